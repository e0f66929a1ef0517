"""The socket and the port on which the daemon answers."""
