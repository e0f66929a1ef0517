"""Git: the hub, agents' worktrees, snapshots of them, and landing. Only `run.py` executes git."""

from windlass.git.adapter import HubGit

__all__ = ["HubGit"]
