"""Instances: starting a workflow, following it, and ending it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from starlette.responses import Response

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotFound
from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Cost, Outcome, Usage
from windlass.core.ports.store import Reading
from windlass.core.workflows.instance import Instance, Motion
from windlass.engine import Engine
from windlass.engine.messages.log import place
from windlass.engine.workflows.start import WorkflowStart
from windlass.engine.workflows.workflows import Situation
from windlass.web import http_io, message_views, views
from windlass.web.request import Call

MOST = 1000
LARGEST_START = 40_000_000
"""Bytes: what setup has printed comes with it."""


async def begin(call: Call) -> Response:
    """Start a workflow; with `check`, only say what would stand in its way."""
    given = await http_io.body(call.request, largest=LARGEST_START)
    values = given.get("values") or {}
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise BadInput("values must be texts by name.")
    start = WorkflowStart(
        path=http_io.text(given, "path"),
        file=http_io.text(given, "file"),
        instance=http_io.text(given, "instance", ""),
        values=values,
        stays=bool(given.get("stays", False)),
    )
    if given.get("check"):
        return http_io.answer({"instance": (await call.engine.workflows.check(start)).name})
    begun = await call.engine.workflows.begin(start)
    return http_io.answer(await _shown(call.engine, await call.engine.workflows.again(begun)), status=201)


async def every(call: Call) -> Response:
    """The instances of a project that have not ended."""
    found = await call.engine.workflows.every(call.request.query_params.get("path", ""))
    names = ("name", "workflow", "source", "channel", "started_at")
    return http_io.answer({"items": [{name: getattr(each, name) for name in names} for each in found]})


async def show(call: Call) -> Response:
    """An instance, as it is now."""
    return http_io.answer(await _shown(call.engine, await _look(call)))


async def wait(call: Call) -> Response:
    """What is said in it as JSON lines, from its kickoff on, until nothing moves without a person."""
    look = await _look(call)
    after = place(call.request.query_params.get("since", "")) or look.instance.after
    return http_io.lines(_until_settled(call, look, after))


async def drain(call: Call) -> Response:
    """Let its agents end what they are at, and start nobody any more."""
    await call.engine.workflows.drain(await _path(call), call.name)
    return http_io.answer({"draining": call.name})


async def stop(call: Call) -> Response:
    """End it, with all that its agents started."""
    path = await _path(call)
    try:
        files = (await call.engine.workflows.look(path, call.name)).instance.files
    except NotFound as error:
        return http_io.answer({"stopped": await _stop_members(call, path, error), "instance": call.name, "files": {}})
    stopped = await call.engine.workflows.stop(path, call.name)
    return http_io.answer({"stopped": stopped, "instance": call.name, "files": dict(files)})


async def _stop_members(call: Call, path: str, error: NotFound) -> list[str]:
    """Stop each agent of an instance that no workflow began; where there is none, say which was probably meant."""
    project = await call.engine.projects.known_at(path)
    agents = await call.engine.ports.store.read(lambda store: store.agents(limit=MOST))
    here = [agent for agent in agents if project and agent.project == project.id and agent.instance]
    members = [each.id for each in here if each.instance == call.name]
    if not members:
        known = {f"@{each.instance}" for each in here} | {
            each.channel for each in await call.engine.workflows.every(path)
        }
        error.hint = f"{near_miss(f'@{call.name}', sorted(known))} {error.hint}".strip()
        raise error
    return [member for member in members if await call.engine.runs.stop(member, "stopped by hand")]


async def _path(call: Call) -> str:
    return http_io.text(await http_io.body(call.request), "path")


async def _look(call: Call) -> Situation:
    return await call.engine.workflows.look(call.request.query_params.get("path", ""), call.name)


async def _until_settled(call: Call, look: Situation, after: int) -> AsyncIterator[dict[str, Any]]:
    engine = call.engine
    ear = engine.bell.ear()
    told: Any = None
    while not engine.bell.silent:
        ear.clear()
        look = await engine.workflows.again(look.instance)
        said = await engine.ports.store.read(partial(_said, look.instance, after))
        shown = await _shown(engine, look, said)
        step = (shown["motion"], shown["ended"], [(each["name"], each["status"]) for each in shown["agents"]])
        if said or step != told:
            told, after = step, place(said[-1].id) if said else after
            yield shown
        if len(said) == MOST:
            continue  # there is more of it
        if shown["ended"] or look.motion is Motion.WAITING:
            return
        await ear.wait()


def _said(instance: Instance, after: int, store: Reading) -> list[Message]:
    return store.said(instance.project, channel=instance.channel, after=after, limit=MOST, newest=False)


async def _shown(engine: Engine, look: Situation, said: list[Message] | None = None) -> dict[str, Any]:
    instance, now = look.instance, engine.ports.clock.now()
    pages = [await engine.status.page(agent) for agent in instance.agents]
    branches = {page.view.agent.id: page.view.agent.branch for page in pages}
    runs = {page.view.agent.id: [run for run in page.runs if run.starting_at >= instance.started_at] for page in pages}
    cost = Cost() + sum((run.usage for each in runs.values() for run in each), Usage())
    return {
        "instance": instance.name,
        "workflow": instance.workflow,
        "source": instance.source,
        "channel": instance.channel,
        "motion": look.motion,
        "ended": not instance.live,
        "ending": instance.ending,
        "reason": instance.reason,
        "waiting": list(look.waiting),
        "failed": list(look.failed),
        "agents": [views.agent(page.view) for page in pages],
        "reports": {name: each[-1].result for name, each in runs.items() if each},
        "left": {name: each[-1].reason for name, each in runs.items() if each and each[-1].outcome is Outcome.DONE},
        "runs": sum(map(len, runs.values())),
        "seconds": (now if instance.ended_at is None else instance.ended_at) - instance.started_at,
        "cost_usd": cost.known,
        "unpriced_runs": cost.unpriced,
        "changes": [views.change(change, now=now, paused="") for change in look.changes],
        "unlanded": {head: branches[head] for head in instance.heads},
        "messages": [message_views.message(each, ()) for each in said or []],
    }
