"""What people and agents type: a thin client of the daemon."""
