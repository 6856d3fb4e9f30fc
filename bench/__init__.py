"""Benchmarks: each prints a table and writes JSON; none passes or fails by the clock."""
