"""Who speaks, in which project: the connection says so, and what a caller types must agree with it."""

from __future__ import annotations

from collections.abc import Iterable

from windlass.core.address import HUMAN, Address
from windlass.core.agent import Agent
from windlass.core.errors import NotAllowed, NotFound
from windlass.core.project import Project
from windlass.engine.readers import Speaker
from windlass.web.call import Call


async def speaker(call: Call, named: str = "") -> Speaker:
    """Whoever calls. A run that gives another name than its own is refused."""
    found = await call.engine.talk.speaker(call.caller.run)
    if named and call.caller.run and str(Address.parse(named)) != found.address:
        raise NotAllowed(
            f"You are {found.address}, and can't speak as {named}.", hint="Leave the name out: who you are is known."
        )
    return found


async def viewer(call: Call) -> str:
    """Who looks: an agent, by its id; nothing for a person, who may see everything."""
    return (await speaker(call)).address if call.caller.run else ""


async def claimed(call: Call, who: Speaker, project: str, named: str) -> str:
    """Whom a person says that they speak for, who must be there; nobody, where it is themselves."""
    other = str(Address.parse(named)) if named and not call.caller.run else ""
    if other in ("", str(HUMAN)):
        return ""
    await resolved(call, who, project, other)
    return other


async def listener(call: Call, named: str) -> Speaker:
    """Whose mail is looked at: one's own, or, for a person, anybody's."""
    own = await speaker(call, named)
    if call.caller.run or named in ("", own.address):
        return own
    if call.path:
        where = await project(call, own, call.path)
        return Speaker(await resolved(call, own, where, named), where)
    agent = await call.engine.ports.store.read(lambda store: store.find(Agent, named))
    if agent is None:
        raise NotFound(f"There is no agent {named}.")
    return Speaker(agent.id, agent.project)


async def resolved(call: Call, who: Speaker, project: str, name: str) -> str:
    """The id of an agent that someone names. Raises NotFound with the near miss."""
    found = await call.engine.ports.store.read(lambda store: store.find(Project, project))
    return await call.engine.directory.known(found, who, name) if found else name


async def novelty(call: Call, project: str, to: Iterable[str]) -> str:
    """What is to be said about instances that are only there from now on."""
    found = await call.engine.ports.store.read(lambda store: store.find(Project, project))
    return await call.engine.directory.newcomers(found, to) if found else ""


async def project(call: Call, who: Speaker, path: str, *, new: bool = False) -> str:
    """An agent's own project; a person's is the one of the folder that they stand in, which may be a new one."""
    if who.project or not path:
        return who.project
    if new:
        return (await call.engine.projects.at(path)).id
    known = await call.engine.projects.known_at(path)
    return known.id if known else "none"
