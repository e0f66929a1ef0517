"""The command line for people and agents: a thin client of the daemon."""
