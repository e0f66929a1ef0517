"""The git port in memory: repositories, a hub for each project, and worktrees, moved by a test as people move them."""

from __future__ import annotations

from fakes.git_landing import FakeLandingGit
from fakes.git_user import FakeUserGit
from fakes.git_work import FakeWorkGit


class FakeGit(FakeUserGit, FakeWorkGit, FakeLandingGit):
    """All of git that the engine needs, without a disk. Files merge as a whole, never line by line."""
