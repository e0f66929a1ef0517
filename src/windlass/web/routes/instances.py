"""Instances: starting a workflow, following it, and ending it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from msgspec import field
from msgspec.structs import asdict
from starlette.responses import Response

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import NotFound
from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Cost, Outcome, Usage
from windlass.core.requests import Request
from windlass.core.workflows.instance import Motion
from windlass.engine import Engine
from windlass.engine.messages.log import place
from windlass.engine.views.journal import MOST_SAID
from windlass.engine.workflows.start import WorkflowStart
from windlass.engine.workflows.workflows import Situation
from windlass.web import http_io, message_views, views
from windlass.web.request import Answer, Call, Folder, PlaceQuery, PlaceRequest

LARGEST_START = 40_000_000
"""Bytes: what setup has printed comes with it."""


class InstanceRequest(Request):
    path: Folder
    file: str
    instance: str = ""
    values: dict[str, str] = field(default_factory=dict)
    stays: bool = False
    check: bool = False


class WaitQuery(PlaceQuery):
    since: str = ""


async def begin(call: Call, given: InstanceRequest) -> Response:
    """Start a workflow; with `check`, only say what would stand in its way."""
    wanted = asdict(given)
    only_check = wanted.pop("check")
    start = WorkflowStart(**wanted)
    if only_check:
        return http_io.answer({"instance": (await call.engine.workflows.check(start)).name})
    begun = await call.engine.workflows.begin(start)
    return http_io.answer(await _shown(call.engine, await call.engine.workflows.again(begun)), status=201)


async def every(call: Call, given: PlaceQuery) -> Answer:
    """The instances of a project that have not ended."""
    names = ("name", "workflow", "source", "channel", "started_at")
    instances = await call.engine.workflows.every(given.path)
    return {"items": [{name: getattr(instance, name) for name in names} for instance in instances]}


async def show(call: Call, given: PlaceQuery) -> Answer:
    """An instance, as it is now."""
    return await _shown(call.engine, await call.engine.workflows.look(given.path, call.name))


async def wait(call: Call, given: WaitQuery) -> Response:
    """What is said in it as JSON lines, from its kickoff on, until nothing moves without a person."""
    look = await call.engine.workflows.look(given.path, call.name)
    return http_io.lines(_until_settled(call, look, place(given.since) or look.instance.after))


async def drain(call: Call, given: PlaceRequest) -> Answer:
    """Let its agents end what they are at, and start nobody any more."""
    await call.engine.workflows.drain(given.path, call.name)
    return {"draining": call.name}


async def stop(call: Call, given: PlaceRequest) -> Answer:
    """End it, with all that its agents started."""
    workflows = call.engine.workflows
    try:
        files = (await workflows.look(given.path, call.name)).instance.files
        stopped = await workflows.stop(given.path, call.name)
    except NotFound as error:
        stopped, files = await _stop_members(call, given.path, error), {}
    return {"stopped": stopped, "instance": call.name, "files": files}


async def _stop_members(call: Call, path: str, error: NotFound) -> list[str]:
    """Stop each agent of an instance that no workflow began; where there is none, say which was probably meant."""
    agents = [view.agent for view in await call.engine.status.every(project=await call.project(path))]
    members = [agent.id for agent in agents if agent.instance == call.name]
    if not members:
        begun = {instance.channel for instance in await call.engine.workflows.every(path)}
        known = sorted(begun | {f"@{agent.instance}" for agent in agents if agent.instance})
        error.hint = f"{near_miss(f'@{call.name}', known)} {error.hint}".strip()
        raise error
    return await call.engine.runs.stop_each(members, "stopped by hand")


async def _until_settled(call: Call, look: Situation, after: int) -> AsyncIterator[dict[str, Any]]:
    engine = call.engine
    ear = engine.bell.ear()
    told: Any = None
    while not engine.bell.silent:
        ear.clear()
        look = await engine.workflows.again(look.instance)
        said = await engine.journal.said_in(look.instance, after)
        shown = await _shown(engine, look, said)
        step = (shown["motion"], shown["ended"], [(agent["name"], agent["status"]) for agent in shown["agents"]])
        if said or step != told:
            told, after = step, place(said[-1].id) if said else after
            yield shown
        if len(said) == MOST_SAID:
            continue  # there is more of it
        if shown["ended"] or look.motion is Motion.WAITING:
            return
        await ear.wait()


async def _shown(engine: Engine, look: Situation, said: list[Message] | None = None) -> dict[str, Any]:
    instance, now = look.instance, engine.ports.clock.now()
    pages = [await engine.status.page(agent) for agent in instance.agents]
    branches = {page.view.agent.id: page.view.agent.branch for page in pages}
    runs = {page.view.agent.id: [run for run in page.runs if run.starting_at >= instance.started_at] for page in pages}
    cost = Cost() + sum((run.usage for own in runs.values() for run in own), Usage())
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
        "messages": [message_views.message(message, ()) for message in said or []],
    }
