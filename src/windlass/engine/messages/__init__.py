"""Saying, reading and sharing."""
