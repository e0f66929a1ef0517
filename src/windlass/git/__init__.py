"""Git: the hub, agents' worktrees, snapshots of them, and landing. Only `program.py` executes git."""

from windlass.git.adapter import HubGit

__all__ = ["HubGit"]
