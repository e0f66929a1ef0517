"""What things are and what the rules say. Pure: no I/O, no clock, no randomness."""
