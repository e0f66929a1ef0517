"""Who speaks, in which project: the connection says so, and what a caller types must agree with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from windlass.core.address import HUMAN, Address
from windlass.core.agents.definition import homes
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Reading
from windlass.engine.messages.directory import Speaker
from windlass.engine.records.lookup import project_here
from windlass.web.request import Call

MOST = 10_000


async def speaker(call: Call, named: str = "") -> Speaker:
    """Whoever calls. A run that gives another name than its own is refused."""
    found = await call.engine.talk.speaker(call.caller.run)
    if named and call.caller.run and str(Address.parse(named)) not in _own_names(found):
        raise NotAllowed(
            f"You are {found.address}, and can't speak as {named}.", hint="Leave the name out: who you are is known."
        )
    return found


def _own_names(who: Speaker) -> tuple[str, str]:
    """What an agent may call itself: in its own instance its bare name is nobody else's."""
    return who.address, Address.parse(who.address).name


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
        raise NotFound(f"There is no agent {named}.", hint=await near_agent(call, named))
    return Speaker(agent.id, agent.project)


async def agent(call: Call) -> str:
    """The agent that a request's path names, which must be there. Raises NotFound with the near miss."""
    if await call.engine.ports.store.read(lambda store: store.find(Agent, call.name)) is None:
        raise NotFound(f"There is no agent {call.name}.", hint=await near_agent(call, call.name))
    return call.name


async def near_agent(call: Call, name: str) -> str:
    """The agent of any project that was probably meant, and how to see them all."""

    def names(store: Reading) -> list[str]:
        return [each.id for each in (*store.agents(limit=MOST), *store.agents(retired=True, limit=MOST))]

    return f"{near_miss(name, await call.engine.ports.store.read(names))} {NotFound.hint}".strip()


async def resolved(call: Call, who: Speaker, project: str, name: str) -> str:
    """The id of an agent that someone names. Raises NotFound with the near miss."""
    found = await call.engine.ports.store.read(lambda store: project_here(store, project))
    key = await call.engine.directory.known(found, who, name)
    return await call.engine.ports.store.read(partial(_at_home, found, key))


def _at_home(project: Project, key: str, store: Reading) -> str:
    """The id that an agent has or would get in its project: another project's may have the name itself."""
    if _is_free(store, project, key) or key == str(HUMAN):
        return key
    return next((home for home in homes(key, project.name) if _is_free(store, project, home)), key)


def _is_free(store: Reading, project: Project, key: str) -> bool:
    agent = store.find(Agent, key)
    return agent is None or agent.project == project.id


async def placed(call: Call, who: Speaker, path: str, *, new: bool = False) -> str:
    """The same as `project`, where there must be one."""
    found = await project(call, who, path, new=new)
    if not found:
        raise nowhere()
    return found


def nowhere() -> BadInput:
    """What to say to someone who names no project, and nobody who is in one."""
    return BadInput(
        "It is not clear which project is meant: path is missing.",
        hint='Stand in a folder of the project. Over HTTP, name one: `?path=/folder`, or "path" in the body.',
    )


async def elsewhere(call: Call, agents: Iterable[str], *, task: str = "") -> tuple[str, str]:
    """The project of those whom someone names who stands in none, and a sentence that says so; or nothing."""

    def question(store: Reading) -> list[Agent]:
        found = store.find(Task, task) if task else None
        names = [*agents, *([found.agent] if found and found.agent else [])]
        return [agent for name in names if (agent := store.find(Agent, name)) is not None]

    known = await call.engine.ports.store.read(question)
    if len({each.project for each in known}) != 1:
        raise nowhere()
    where = await call.engine.projects.get(known[0].project)
    names = ", ".join(each.id for each in known)
    verb = "is an agent" if len(known) == 1 else "are agents"
    return where.id, f"{names} {verb} of {where.name}, in {where.path}."


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
