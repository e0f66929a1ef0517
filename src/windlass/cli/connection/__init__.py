"""How a command reaches the daemon."""
