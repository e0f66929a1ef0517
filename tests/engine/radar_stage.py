"""A stage for the radar: agents that edit one long file, and a count of what git was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

from stage import Stage

from windlass.core.nouns.message import Message
from windlass.core.radar.collisions import Act, Collision
from windlass.core.settings.schema import RadarSettings
from windlass.engine.projects.tasks import Order

LINES = [f"line {number}\n" for number in range(30)]


class RadarStage(Stage):
    """Agents that edit, a radar that is set to something, and a count of what git was asked."""

    def __init__(self, repo: Path, home: Path, act: Act = Act.SHOW) -> None:
        super().__init__(repo, home)
        self.settings.settings = replace(self.settings.settings, radar=RadarSettings(act=act))
        self.asked: Counter[str] = Counter()
        self.count()

    def count(self) -> None:
        """Count the calls of the engine's git from now on."""
        git: Any = self.engine.ports.git
        for name in ("quick_look", "clash", "since"):
            setattr(git, name, self._counted(name, getattr(git, name)))

    def _counted(self, name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @wraps(call)
        async def counted(*given: Any) -> Any:
            self.asked[name] += 1
            return await call(*given)

        return counted

    async def restart(self) -> None:
        await super().restart()
        self.count()

    async def begin(self, *titles: str) -> list[str]:
        """Agents at work, by name."""
        names = [await self.order(title) for title in titles]
        await self.move()
        return names

    async def declare(self, title: str, *paths: str) -> str:
        """An agent whose task says what it is to change."""
        order = Order(
            path=str(self.repo), title=title, provider="command", options={"command": "agent"}, paths=tuple(paths)
        )
        _, agent = await self.engine.tasks.add(order)
        return agent.id

    async def write(self, name: str, path: str, text: str) -> None:
        """An agent edits a file, and says so."""
        tree = await self.worktree(name)
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
        await self.mutter(name)

    async def mutter(self, name: str) -> None:
        """An agent prints something."""
        self.clock.time += 0.001
        self.processes.say((await self.run_of(name)).id, b"working\n")

    async def pass_time(self, seconds: int) -> None:
        """Let every tick run once a second."""
        for _ in range(seconds):
            self.clock.time += 1.0
            await self.move()

    async def found(self, *, look: bool = True) -> list[Collision]:
        self.clock.time += 3.0  # what was seen just now would be good enough
        return [each for _, each in (await self.engine.radar.picture(look=look)).collisions]

    async def told(self, name: str) -> list[Message]:
        """What the system has told an agent."""
        task = await self.task_of(name)
        said = await self.store.read(lambda store: store.messages(f"task/{task.id}"))
        return [each for each in said if each.sender == "system" and name in each.to]

    async def evidence(self, name: str) -> str:
        return next(each.evidence for each in await self.engine.status.every() if each.agent.id == name)


def with_line(number: int, text: str) -> str:
    return "".join([*LINES[:number], f"{text}\n", *LINES[number + 1 :]])
