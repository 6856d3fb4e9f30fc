"""Cases: what one incident taught, kept for the next one."""
