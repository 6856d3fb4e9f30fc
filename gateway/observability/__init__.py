"""The server's log and metrics."""
