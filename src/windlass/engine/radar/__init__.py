"""The radar tick."""
