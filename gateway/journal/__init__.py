"""The JSONL log of each turn."""
