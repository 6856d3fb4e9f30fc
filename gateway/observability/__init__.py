"""What the gateway tells of itself: its log and its metrics."""
