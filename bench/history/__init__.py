"""Judges a history of one gateway of several servers: `python -m bench.history FILE`; see README.md here."""
