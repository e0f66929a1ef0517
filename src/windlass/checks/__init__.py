"""Checks: the project's own commands, run on exactly the tree that main would have."""
