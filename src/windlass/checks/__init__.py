"""Checks: the project's own commands, run on exactly the tree that main would have."""

from windlass.checks.command import CommandChecks

__all__ = ["CommandChecks"]
