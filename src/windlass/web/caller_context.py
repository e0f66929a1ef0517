"""Who calls, as the connection tells: the engine knows the rest."""

from __future__ import annotations

from collections.abc import Iterable

from windlass.core.messages.members import Speaker
from windlass.engine.messages.callers import CallerInProject
from windlass.web.request import Call


async def speaker(call: Call) -> Speaker:
    """The caller, without a project."""
    return await call.engine.talk.speaker(call.caller.run)


async def viewer(call: Call) -> str:
    """Who looks: an agent, by its id; nothing for a person, who may see everything."""
    return (await speaker(call)).address if call.caller.run else ""


async def agent(call: Call) -> str:
    """The agent that a request's path names, which must be there. Raises NotFound with the near miss."""
    return (await call.engine.directory.check_agent(call.name)).id


async def in_project(call: Call, path: str) -> CallerInProject:
    """The caller, in the project of a folder."""
    return await call.engine.callers.identify(call.caller.run, path=path)


async def sender(call: Call, path: str, name: str, readers: Iterable[str], task: str = "") -> CallerInProject:
    """The caller who sends or writes: in a new project, too, or in the one of the readers if no folder is named."""
    return await call.engine.callers.identify(
        call.caller.run, path=path, name=name, readers=readers, task=task, register=True
    )
