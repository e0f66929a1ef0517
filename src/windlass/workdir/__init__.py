"""The files that we and agents exchange: a run's own folder, and `.windlass/` in the agent's worktree."""

from windlass.workdir.folders import RunFolders

__all__ = ["RunFolders"]
