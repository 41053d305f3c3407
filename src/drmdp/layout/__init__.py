"""What compiled code reads."""
