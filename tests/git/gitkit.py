"""A user with a repository, an agent with a worktree, and real git between them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from repositories import new_repository
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.git import HubGit

NOW = 1_700_000_000.5
ADA = "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n"
FIRST = {"a.txt": "one\ntwo\nthree\n", "b.txt": "bee\n", "dir/c.txt": "sea\n", ".gitignore": "*.log\n"}


class World:
    """One user's machine below a folder: `home` is theirs, `state` is Windlass's."""

    def __init__(self, folder: Path, main: str = "main") -> None:
        self.folder = folder
        self.home = folder / "home"
        self.state = folder / "sta:te 'ü"
        self.canary = folder / "canary"
        self.repository = folder / "wörk: it's" / "ré po"
        self.home.mkdir(parents=True)
        self.state.mkdir()
        self.repository.mkdir(parents=True)
        (self.home / ".gitconfig").write_text(ADA)
        self.main = main
        self.project = Project(id="p-1", name="repo", path=str(self.repository), main=main)
        self.git = HubGit(self.state, environment=self.environment, now=lambda: NOW)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}

    @property
    def hub(self) -> Path:
        return self.state / "hubs" / "p-1.git"

    def run(self, *args: str, at: Path | None = None, extra: Mapping[str, str] | None = None, ok: bool = True) -> str:
        """Git as the user types it."""
        ran = subprocess.run(
            ["git", *args],
            cwd=at or self.repository,
            env=self.environment | dict(extra or {}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert not ok or ran.returncode == 0, f"git {args}: {ran.stderr}"
        return (ran.stdout if ok else ran.stdout + ran.stderr).strip()

    def begin(self) -> World:
        """The user's first commit."""
        new_repository(self.repository, FIRST, settings=f"{ADA}[init]\n\tdefaultBranch = {self.main}\n")
        return self

    def commit(self, files: Mapping[str, str], at: Path | None = None, message: str = "Work") -> str:
        """Write files and commit them."""
        top = at or self.repository
        self.write(files, top)
        self.run("add", "-A", at=top)
        self.run("commit", "-q", "-m", message, at=top)
        return self.run("rev-parse", "HEAD", at=top)

    def write(self, files: Mapping[str, str], at: Path | None = None) -> None:
        for name, text in files.items():
            path = (at or self.repository) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def tip(self, ref: str = "", at: Path | None = None) -> str:
        return self.run("rev-parse", ref or f"refs/heads/{self.main}", at=at)

    def act_at(self, name: str, act: Callable[[], object]) -> None:
        """From now on, someone acts at the first such step of our git."""
        waiting = [act]

        def step(passed: str) -> None:
            if passed == name and waiting:
                waiting.pop()()

        self.git = HubGit(self.state, environment=self.environment, now=lambda: NOW, step=step)

    def hub_refs(self) -> list[str]:
        return self.run("--git-dir", str(self.hub), "for-each-ref", "--format=%(refname)").splitlines()

    async def agent(self, name: str = "coder") -> tuple[Agent, Path]:
        """An agent with a worktree."""
        agent = an_agent(name)
        path, _ = await self.git.worktree(self.project, agent)
        return agent, Path(path)

    async def change(self, files: Mapping[str, str], name: str = "coder") -> str:
        """An agent that has committed files; returns its branch's commit, which is in the hub."""
        agent, path = await self.agent(name)
        self.commit(files, at=path)
        return (await self.git.look(self.project, agent, "r1")).head


def an_agent(name: str = "coder", instance: str = "") -> Agent:
    return Agent(name=name, instance=instance, project="p-1", provider="command")
