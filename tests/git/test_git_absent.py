"""A repository that is not at its path any more, as the disk shows it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import patience
from windlass.core.errors import NotFound
from windlass.core.nouns.project import Project
from windlass.git import HubGit


def absence(home: Path, path: Path) -> str:
    """What the port says about a repository."""
    project = Project(id="p-1", name="shop", path=str(path), main="main")
    return asyncio.run(HubGit(home, environment=os.environ).absence(project))


def test_a_folder_without_a_repository_is_gone_although_a_folder_above_has_one(repo: Path, tmp_path: Path) -> None:
    """As an empty mount point in someone's repository: git itself would take the one above."""
    inside = repo / "mnt"
    inside.mkdir()
    assert absence(tmp_path, inside) == f"its repository {inside} is gone: the folder is there, but no git repository"
    shutil.rmtree(repo / ".git")
    assert "no git repository" in absence(tmp_path, repo)
    repo.rename(tmp_path / "moved")
    assert absence(tmp_path, repo) == f"its repository {repo} is gone"


def test_a_linked_worktree_is_there_as_long_as_its_repository_is(repo: Path, tmp_path: Path) -> None:
    """Its `.git` is a file that names a folder."""
    linked = tmp_path / "linked"
    subprocess.run(["git", "worktree", "add", "-q", str(linked)], cwd=repo, check=True)
    assert absence(tmp_path, linked) == ""
    shutil.rmtree(repo)
    assert "no git repository" in absence(tmp_path, linked)


def test_a_disk_that_does_not_answer_stops_nobody_else(tmp_path: Path) -> None:
    """Others go on while one waits for it."""
    place = tmp_path / "slow"
    place.mkdir()
    os.mkfifo(place / ".git")
    going_on = threading.Event()
    answered: list[bool] = []

    def answer() -> None:
        with (place / ".git").open("w"):
            answered.append(going_on.wait(patience.seconds(10)))

    async def story() -> None:
        project = Project(id="p-1", name="shop", path=str(place), main="main")
        disk = asyncio.create_task(asyncio.to_thread(answer))
        asked = asyncio.create_task(HubGit(tmp_path, environment=os.environ).absence(project))
        await asyncio.sleep(0)
        going_on.set()
        await disk
        assert "no git repository" in await asked

    asyncio.run(story())
    assert answered == [True]


def test_without_hub_and_repository_the_error_names_both(tmp_path: Path) -> None:
    """And what to do."""
    project = Project(id="p-1", name="shop", path=str(tmp_path / "no"), main="main")
    with pytest.raises(NotFound, match=r"shop has no hub, and its repository .*/no is gone") as raised:
        asyncio.run(HubGit(tmp_path, environment=os.environ).main(project))
    assert "windlass project forget shop" in raised.value.hint
