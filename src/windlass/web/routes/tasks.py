"""Tasks: adding one, and waiting for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from msgspec import field
from msgspec.structs import asdict
from starlette.responses import Response

from windlass.core import policy
from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Confinement, Permissions, Status
from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.project import halt
from windlass.core.nouns.task import Mode, Task, TaskState
from windlass.core.requests import Request
from windlass.engine import Engine
from windlass.engine.projects.tasks import Order
from windlass.engine.records.messages import channel_of
from windlass.web import http_io, views
from windlass.web.request import Answer, Call, Folder, Texts


class TaskRequest(Request):
    path: Folder
    title: str
    brief: str = ""
    paths: Texts = ()
    agent: str = ""
    provider: str = ""
    model: str = ""
    permissions: Permissions | None = None
    sandbox: Confinement | None = None
    options: dict[str, str] = field(default_factory=dict)
    mode: Mode = Mode.EXECUTE
    phase: str = ""


async def add(call: Call, given: TaskRequest) -> Answer:
    """Give an agent a piece of work."""
    if given.mode is Mode.REVIEW:
        raise BadInput("A review is of a change.", hint="POST /changes/{id}/review begins one.")
    known = await call.engine.projects.known_at(given.path)
    task, agent = await call.engine.tasks.add(Order(**asdict(given)))
    project = await call.engine.projects.get(task.project)
    place = {
        "name": project.name,
        "main": project.main,
        "new": known is None or bool(known.forgotten),
        "checks": call.engine.ports.settings.at(project.path).checks.command,
        "waits": halt(project, None, call.now),
    }
    return {"task": views.task(task), "agent": agent.id, "branch": agent.branch, "project": place}


async def show(call: Call) -> Answer:
    """A task, with its agent, its change and its questions."""
    return await _look(call.engine, call.id, call.viewer)


async def wait(call: Call) -> Response:
    """The same as JSON lines at each step, until nothing moves without a person."""
    await call.engine.tasks.get(call.id)
    return http_io.lines(_until_settled(call.engine, call.id, call.viewer))


async def _until_settled(engine: Engine, key: str, viewer: str) -> AsyncIterator[dict[str, Any]]:
    told: tuple[Any, ...] = ()
    async for _ in engine.bell.rings():
        seen = await _look(engine, key, viewer)
        task, agent, change = seen["task"], seen["agent"], seen["change"] or {}
        step = (task["state"], agent["status"], agent["run"], change.get("state"), seen["settled"])
        if step != told:
            told = step
            yield seen
        if seen["settled"]:
            return


async def _look(engine: Engine, key: str, viewer: str) -> dict[str, Any]:
    task = await engine.tasks.get(key)
    page = await engine.status.page(task.agent, viewer=viewer)
    change = await engine.changes.of_task(task.id)
    paused = await engine.changes.halted(change) if change else ""
    questions = [question for question in page.questions if question.channel == channel_of(task.id)]
    return {
        "task": views.task(task),
        "agent": _seen_from(task, views.agent(page.view)),
        "change": views.change(change, now=engine.ports.clock.now(), paused=paused) if change else None,
        "questions": [views.said(question) for question in questions],
        "landed": change is not None and change.state is ChangeState.LANDED,
        "settled": policy.is_settled(task, change, asked=bool(questions)),
    }


def _seen_from(task: Task, agent: dict[str, Any]) -> dict[str, Any]:
    """The agent, as a caller sees it who waits for this task: the agent may be at another one."""
    if agent["task"] == task.id or task.state is not TaskState.OPEN:
        return agent
    return agent | {"status": Status.IDLE, "evidence": f"waits until {task.agent} is done with {agent['task']}"}
