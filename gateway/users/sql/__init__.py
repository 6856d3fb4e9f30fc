"""The stores of users, tokens, sessions, quotas and the audit log, in SQLite or PostgreSQL.

Times are aware and kept to the millisecond. Every change is one transaction together with its entry
in the audit log. Every method raises `memory.errors.StoreUnavailable` if the store cannot be read
or written.
"""
