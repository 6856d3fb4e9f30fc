"""What may happen: pure decisions, with the standard library alone."""
