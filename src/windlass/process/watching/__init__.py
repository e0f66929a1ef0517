"""Learning that a process has ended or its output has grown."""
