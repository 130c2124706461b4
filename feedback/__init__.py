"""From an outcome to better weights."""
