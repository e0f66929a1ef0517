"""A person's repository and an agent's worktree, behind the git port: with real git, and in memory."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol

from fakes import FakeGit
from fakes.repository import Edits
from repositories import new_repository
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Candidate
from windlass.core.nouns.project import Project
from windlass.core.ports.git import Git
from windlass.git import HubGit

FIRST = {"a.txt": "one\n", "b.txt": "two\n", "dir/c.txt": "three\n", ".gitignore": "*.log\n"}


class GitStage(Protocol):
    """A port under test, and the hands of people and agents."""

    port: Git
    project: Project

    def tip(self, branch: str = "main") -> str: ...
    def commit(self, edits: Edits) -> str:
        """Commit to what the user has checked out: main, unless they left it."""
        ...

    def branches(self) -> set[str]:
        """The user's branches."""
        ...

    def edit(self, edits: Edits) -> None:
        """Edit the user's checkout without committing."""
        ...

    def files(self) -> Mapping[str, str]:
        """What lies in the user's checkout."""
        ...

    def leave_main(self) -> None:
        """Check out another branch."""
        ...

    def reset(self, commit: str) -> None:
        """Put main elsewhere."""
        ...

    def write(self, worktree: str, edits: Edits) -> None: ...
    def agent_commits(self, worktree: str, edits: Edits) -> str: ...
    def agent_switches(self, worktree: str, branch: str) -> None: ...
    def nest(self, worktree: str) -> None:
        """Put a repository into a worktree."""
        ...

    def take_away(self) -> None:
        """Take the user's repository away, as who unmounts a disk."""
        ...

    def put_back(self) -> None: ...
    def damage(self, worktree: str) -> None:
        """Lose a part of the last commit there."""
        ...

    def litter(self, worktree: str, name: str) -> None:
        """Leave a file there that git ignores."""
        ...

    def seen(self, worktree: str) -> Mapping[str, str]:
        """What lies in a worktree, without what git ignores."""
        ...

    def lose(self, worktree: str) -> None:
        """Remove a worktree by hand."""
        ...

    def folder(self, name: str) -> str: ...
    def read_folder(self, folder: str) -> Mapping[str, str]: ...


def an_agent(name: str = "coder", instance: str = "") -> Agent:
    return Agent(name=name, instance=instance, project="p-1", provider="command")


class RealGit:
    """HubGit, and git as people and agents type it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repository = path / "repository"
        (path / "state").mkdir()
        self.project = Project(id="p-1", name="repository", path=str(self.repository), main="main")
        self.hub = HubGit(path / "state", environment=os.environ)
        self.port: Git = self.hub
        new_repository(self.repository, FIRST)

    def tip(self, branch: str = "main") -> str:
        return self._git("rev-parse", f"refs/heads/{branch}")

    def commit(self, edits: Edits) -> str:
        return self._commit(self.repository, edits)

    def branches(self) -> set[str]:
        return {*self._git("for-each-ref", "--format=%(refname:short)", "refs/heads/").split()}

    def edit(self, edits: Edits) -> None:
        _write(self.repository, edits)

    def files(self) -> Mapping[str, str]:
        return _read(self.repository)

    def leave_main(self) -> None:
        self._git("switch", "-q", "-c", "elsewhere")

    def reset(self, commit: str) -> None:
        self._git("reset", "-q", "--hard", commit)

    def write(self, worktree: str, edits: Edits) -> None:
        _write(Path(worktree), edits)

    def agent_commits(self, worktree: str, edits: Edits) -> str:
        return self._commit(Path(worktree), edits)

    def agent_switches(self, worktree: str, branch: str) -> None:
        self._git("switch", "-q", "-c", branch, at=Path(worktree))

    def nest(self, worktree: str) -> None:
        inner = Path(worktree) / "vendor"
        inner.mkdir()
        self._git("init", "-q", at=inner)
        self._commit(inner, {"x": "x\n"})

    def damage(self, worktree: str) -> None:
        tree = self._git("rev-parse", "HEAD^{tree}", at=Path(worktree))
        (Path(worktree) / ".git/objects" / tree[:2] / tree[2:]).unlink()

    def litter(self, worktree: str, name: str) -> None:
        _write(Path(worktree), {f"{name}.log": "noise\n"})

    def seen(self, worktree: str) -> Mapping[str, str]:
        return {name: text for name, text in _read(Path(worktree)).items() if not name.endswith(".log")}

    def take_away(self) -> None:
        self.repository.rename(self.path / "elsewhere")

    def put_back(self) -> None:
        (self.path / "elsewhere").rename(self.repository)

    def lose(self, worktree: str) -> None:
        subprocess.run(("rm", "-rf", "--", worktree), check=True)

    def folder(self, name: str) -> str:
        return str(self.path / name)

    def read_folder(self, folder: str) -> Mapping[str, str]:
        return _read(Path(folder))

    def _commit(self, at: Path, edits: Edits) -> str:
        _write(at, edits)
        self._git("add", "-A", at=at)
        self._git("commit", "-q", "-m", "Work", at=at)
        return self._git("rev-parse", "HEAD", at=at)

    def _git(self, *words: str, at: Path | None = None) -> str:
        ran = subprocess.run(["git", *words], cwd=at or self.repository, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()


def _write(folder: Path, edits: Edits) -> None:
    for name, text in edits.items():
        if text is None:
            (folder / name).unlink()
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)


def _read(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(file.relative_to(folder)): file.read_text() for file in files}


class MemoryGit:
    """FakeGit, moved directly."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.project = Project(id="p-1", name="repository", path=f"{path}/repository", main="main")
        self.fake = FakeGit(f"{path}/state", now=lambda: 1_700_000_000.0)
        self.port: Git = self.fake
        self.repository = self.fake.repository(self.project.path, FIRST)

    def tip(self, branch: str = "main") -> str:
        return self.repository.branches[branch]

    def commit(self, edits: Edits) -> str:
        return self.repository.commit(edits, self.repository.checked_out)

    def branches(self) -> set[str]:
        return {*self.repository.branches}

    def edit(self, edits: Edits) -> None:
        self.repository.write(edits)

    def files(self) -> Mapping[str, str]:
        return self.repository.files

    def leave_main(self) -> None:
        self.repository.branches["elsewhere"] = self.tip()
        self.repository.switch("elsewhere")

    def reset(self, commit: str) -> None:
        self.repository.reset("main", commit)

    def write(self, worktree: str, edits: Edits) -> None:
        self.fake.worktrees[worktree].write(edits)

    def agent_commits(self, worktree: str, edits: Edits) -> str:
        return self.fake.worktrees[worktree].commit(edits)

    def agent_switches(self, worktree: str, branch: str) -> None:
        self.fake.worktrees[worktree].switch(branch)

    def nest(self, worktree: str) -> None:
        self.fake.worktrees[worktree].nested.add("vendor")

    def damage(self, worktree: str) -> None:
        self.fake.worktrees[worktree].damage = "a tree is missing"

    def litter(self, worktree: str, name: str) -> None:
        self.fake.worktrees[worktree].ignored.add(f"{name}.log")

    def seen(self, worktree: str) -> Mapping[str, str]:
        return self.fake.worktrees[worktree].files

    def take_away(self) -> None:
        del self.fake.repositories[self.project.path]

    def put_back(self) -> None:
        self.fake.repositories[self.project.path] = self.repository

    def lose(self, worktree: str) -> None:
        del self.fake.worktrees[worktree]

    def folder(self, name: str) -> str:
        return f"{self.path}/{name}"

    def read_folder(self, folder: str) -> Mapping[str, str]:
        return self.fake.archive.folders[folder]


STAGES: dict[str, Callable[[Path], GitStage]] = {"hub": RealGit, "fake": MemoryGit}

Story = Callable[[Git], Coroutine[Any, Any, None]]


def play(stage: GitStage, story: Story) -> None:
    asyncio.run(story(stage.port))


async def committed(stage: GitStage, edits: Edits, name: str = "coder") -> str:
    """An agent has committed; returns its branch's commit, which is in the hub."""
    path, _ = await stage.port.worktree(stage.project, an_agent(name))
    stage.agent_commits(path, edits)
    return (await stage.port.look(stage.project, an_agent(name), "r1")).head


async def staged(stage: GitStage, edits: Edits, name: str = "coder") -> Candidate:
    return await stage.port.stage(stage.project, await committed(stage, edits, name), f"Land {name}")
