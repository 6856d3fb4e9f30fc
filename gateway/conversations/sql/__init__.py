"""The stores of conversations, turns, events and what belongs to them, in SQLite or PostgreSQL.

Each passes its suite (`tests/conformance`) on both. Times are aware and kept to the millisecond.
Texts are any Unicode without lone surrogates. Reads are independent values. Every write is atomic,
whenever it is cancelled or the process is killed. Every method raises
`memory.errors.StoreUnavailable` if the store cannot be read or written.
"""
