"""Who speaks, in which project: the connection says so, and what a caller types must agree with it."""

from __future__ import annotations

from windlass.core.address import HUMAN, Address
from windlass.core.agent import Agent
from windlass.core.errors import NotAllowed, NotFound
from windlass.core.near import near_miss
from windlass.core.project import Project
from windlass.engine.readers import Speaker
from windlass.engine.say import home_channel
from windlass.web.call import Call


async def speaker(call: Call, named: str = "") -> Speaker:
    """Whoever calls. A run that gives another name than its own is refused."""
    found = await call.engine.talk.speaker(call.caller.run)
    if named and call.caller.run and str(Address.parse(named)) != found.address:
        raise NotAllowed(
            f"You are {found.address}, and can't speak as {named}.", hint="Leave the name out: who you are is known."
        )
    return found


def claimed(call: Call, named: str) -> str:
    """Whom a person says that they speak for; nobody, where it is themselves."""
    other = str(Address.parse(named)) if named and not call.caller.run else ""
    return "" if other == str(HUMAN) else other


async def listener(call: Call, named: str) -> Speaker:
    """Whose mail is looked at: one's own, or, for a person, anybody's."""
    own = await speaker(call, named)
    if call.caller.run or named in ("", own.address):
        return own
    key = await resolved(call, own, await project(call, own, call.path), named) if call.path else named
    agent = await call.engine.ports.store.read(lambda store: store.find(Agent, key))
    if agent is None:
        raise NotFound(f"There is no agent {named}.")
    return Speaker(agent.id, agent.project)


async def resolved(call: Call, who: Speaker, project: str, name: str) -> str:
    """The id of an agent that someone names. Raises NotFound with the near miss."""
    found = await call.engine.ports.store.read(lambda store: store.find(Project, project))
    names = await call.engine.directory.names(found, who) if found else {}
    if found and name not in names:
        raise NotFound(f"There is no agent {name} here.", hint=near_miss(name, names) or NotFound.hint)
    return names.get(name) or name


async def project(call: Call, who: Speaker, path: str, *, new: bool = False) -> str:
    """An agent's own project; a person's is the one of the folder that they stand in, which may be a new one."""
    if who.project or not path:
        return who.project
    if new:
        return (await call.engine.projects.at(path)).id
    known = await call.engine.projects.known_at(path)
    return known.id if known else "none"


async def instance(call: Call, who: Speaker, wanted: str) -> str:
    """Whose documents: an agent's own, and no others; a person may look at any."""
    if not call.caller.run:
        return wanted
    agent = await call.engine.ports.store.read(lambda store: store.find(Agent, who.address))
    home = await call.engine.ports.store.read(lambda store: home_channel(store, agent)) if agent else "main"
    own = home.removeprefix("@") if home.startswith("@") else ""
    if wanted and wanted != own:
        raise NotAllowed(f"You do not belong to {wanted}, and can't see its documents.", hint="Leave --instance out.")
    return own
