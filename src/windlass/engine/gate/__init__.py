"""The land tick, and all that people ask of changes."""
