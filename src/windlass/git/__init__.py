"""Git: the hub, agents' worktrees, snapshots of them, and landing. Only `run.py` executes git."""

from windlass.git.hubgit import HubGit

__all__ = ["HubGit"]
