"""Keeping a run in its place with bubblewrap."""
