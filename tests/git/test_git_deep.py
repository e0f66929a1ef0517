"""Folders in folders, deeper than git and Python go."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from gitkit import World

from windlass.core.errors import NotAllowed
from windlass.git.files import remove_tree


def test_a_folder_too_deep_for_git_is_named_and_keeps_its_worktree(world: World) -> None:
    """Git cuts the line in which it says so: what lies there is not taken for saved."""

    async def story() -> None:
        agent, path = await world.agent()
        here = os.open(path, os.O_RDONLY)
        for _ in range(100):
            os.mkdir("d" * 60, dir_fd=here)
            below = os.open("d" * 60, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(os.open("precious", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.close(here)
        with pytest.raises(NotAllowed, match="an unreadable folder"):
            await world.git.remove_worktree(world.project, agent)
        assert path.is_dir()
        remove_tree(path)
        assert not path.exists()

    asyncio.run(story())


def test_a_folder_deeper_than_python_goes_is_removed(tmp_path: Path) -> None:
    """Whoever checks or sweeps next is not stopped by it."""
    deep = tmp_path / "deep"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(deep)
    assert not deep.exists()
