"""A stage for stories of chat.md: a project that shows it, and agents that write into theirs."""

from __future__ import annotations

from pathlib import Path

from stage import Stage

from windlass.core.messages.members import Speaker
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Project

HUMAN = Speaker("human")


class ChatStage(Stage):
    """A project that shows what happens, three agents in their worktrees, and everyone's hands."""

    async def begin(self) -> None:
        (self.repo / ".windlass").mkdir()
        (self.repo / ".windlass/.gitignore").write_text("*\n")
        self.limit(runs=10)
        self.one, self.two, self.three = [await self.order(f"Task {number}") for number in range(3)]
        await self.pass_time()

    async def pass_time(self) -> None:
        """Long enough for everything that is written to come to rest, and for what follows from it."""
        for _ in range(4):
            await self.move()
            self.clock.time += 1

    async def restart_and_pass(self) -> None:
        await self.restart()
        await self.pass_time()

    @property
    def own(self) -> Path:
        """The project's file."""
        return self.repo / ".windlass/chat.md"

    async def file(self, name: str) -> Path:
        agent = await self.agent(name)
        return Path(self.engine.ports.git.worktree_path(await self.project(), agent)) / ".windlass/chat.md"

    async def project(self) -> Project:
        (project,) = await self.store.read(lambda store: store.projects())
        return project

    async def said(self, *, system: bool = False) -> list[Message]:
        """What was said by people and agents, or by the system about chat files."""
        project = await self.project()
        said = await self.store.read(lambda store: store.said(project.id, limit=1000))
        if system:
            return [each for each in said if each.sender == "system" and "chat.md" in each.body]
        return [each for each in said if each.sender != "system"]

    async def bodies(self) -> list[str]:
        return [each.body for each in await self.said()]


def add(file: Path, text: str) -> None:
    """Let a program add to a file."""
    with file.open("a", encoding="utf-8") as open_file:
        open_file.write(text)


def text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


class Halt(BaseException):
    """The daemon dies here."""
