"""Tasks: adding one, and waiting for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

from starlette.responses import Response

from windlass.core import policy
from windlass.core.agent import Confinement, Permissions
from windlass.core.change import ChangeState
from windlass.core.errors import BadInput
from windlass.engine import Engine
from windlass.engine.tasks import Order
from windlass.web import shapes, wire
from windlass.web.call import Call

C = TypeVar("C", Permissions, Confinement)


async def add(call: Call) -> Response:
    values = await wire.body(call.request)
    order = Order(
        path=wire.text(values, "path"),
        title=wire.text(values, "title"),
        brief=wire.text(values, "brief", ""),
        provider=wire.text(values, "provider", ""),
        permissions=_choice(values, "permissions", Permissions.EDIT),
        sandbox=_choice(values, "sandbox", Confinement.AUTO),
        options=_options(values),
    )
    task, agent = await call.engine.tasks.add(order)
    return wire.answer({"task": shapes.task(task), "agent": agent.id, "branch": agent.branch}, status=201)


def _choice(values: Mapping[str, Any], key: str, default: C) -> C:
    """One of the words that a kind of choice knows."""
    text = wire.text(values, key, default)
    try:
        return type(default)(text)
    except ValueError:
        raise BadInput(f"{key} must be one of {', '.join(type(default))}, not {text!r}.") from None


def _options(values: Mapping[str, Any]) -> dict[str, str]:
    options = values.get("options", {})
    if not isinstance(options, dict) or not all(isinstance(each, str) for each in options.values()):
        raise BadInput("options must be an object of texts.")
    return options


async def show(call: Call) -> Response:
    return wire.answer(await _look(call.engine, call.id))


async def wait(call: Call) -> Response:
    await call.engine.tasks.get(call.id)
    return wire.lines(_until_settled(call.engine, call.id))


async def _until_settled(engine: Engine, key: str) -> AsyncIterator[dict[str, Any]]:
    """The task as it is, and again at every step, until nothing moves without a person."""
    ear = engine.bell.ear()
    told: tuple[Any, ...] = ()
    while not engine.bell.silent:
        ear.clear()
        seen = await _look(engine, key)
        step = _step(seen)
        if step != told:
            told = step
            yield seen
        if seen["settled"]:
            return
        await ear.wait()


def _step(seen: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes a difference to someone who waits."""
    change = seen["change"] or {}
    return seen["task"]["state"], seen["agent"]["status"], seen["agent"]["run"], change.get("state"), seen["settled"]


async def _look(engine: Engine, key: str) -> dict[str, Any]:
    task = await engine.tasks.get(key)
    page = await engine.status.page(task.agent)
    change = page.view.change
    shown = shapes.page(page, now=engine.ports.clock.now())
    return {
        "task": shapes.task(task),
        "agent": shapes.agent(page.view),
        "change": shown["change"],
        "questions": shown["questions"],
        "landed": change is not None and change.state is ChangeState.LANDED,
        "settled": policy.is_settled(task, change, asked=bool(page.questions)),
    }
