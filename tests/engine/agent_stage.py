"""Agents that a repository defines, and the tasks that a story gives them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from stage import Stage

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.task import Task, TaskState
from windlass.core.settings.schema import WorktreeSettings
from windlass.engine.projects.tasks import Order

CODER = """---
name: coder
role: Senior developer
permissions: full
sandbox: auto
model: big
---
Work on {workplace_name}.
"""


def define(repo: Path, name: str, text: str) -> None:
    folder = repo / ".windlass" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)


async def give(
    stage: Stage, title: str, agent: str = "coder", *, command: str = "x", **more: Any
) -> tuple[Task, Agent]:
    given: dict[str, Any] = {"provider": "command", "options": {"command": command}, **more}
    order = Order(path=str(stage.repo), title=title, agent=agent, **given)
    return await stage.engine.tasks.add(order)


async def state(stage: Stage, task: Task) -> TaskState:
    return (await stage.engine.tasks.get(task.id)).state


def setting(stage: Stage, **worktree: object) -> None:
    settings = WorktreeSettings(**worktree)  # type: ignore[arg-type]  # settings by name, as a file has them
    stage.settings.settings = replace(stage.settings.settings, worktree=settings)
