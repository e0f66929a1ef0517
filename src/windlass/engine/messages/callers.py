"""Who calls, and in which project: for every surface alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from windlass.core.address import HUMAN, Address
from windlass.core.agents.grants import Grant, check_call, covers
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.engine.messages.directory import Directory
from windlass.engine.messages.talk import Sent, Talk, speaker_of
from windlass.engine.projects.projects import Projects
from windlass.engine.records.lookup import get


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerInProject:
    """A person or an agent who calls, in the project that is meant."""

    speaker: Speaker
    project: Project
    claims: str = ""
    """The agent that a person claims to be."""
    hint: str = ""
    """Which project is meant, where the caller did not say."""


class Callers:
    """Identifies callers by their connection, and speaks for them."""

    def __init__(self, ports: Ports, projects: Projects, directory: Directory, talk: Talk) -> None:
        self.store = ports.store
        self.projects = projects
        self.directory = directory
        self.talk = talk

    async def admit(self, run: str, grant: Grant, key: str = "") -> Speaker:
        """Say who calls, if they may: an agent by its run, and a person. `key` names what the call is about.

        Raises NotAllowed for a call that is not theirs to make. What belongs to another project does not exist for an
        agent: NotFound.
        """
        check_call(grant, run=bool(run))
        return await self.store.read(partial(_admitted, run, grant, key)) if run else Speaker(str(HUMAN))

    async def identify(
        self,
        speaker: Speaker,
        *,
        path: str = "",
        project: str = "",
        name: str = "",
        readers: Iterable[str] = (),
        task: str = "",
        register: bool = False,
    ) -> CallerInProject:
        """The caller: an agent in its own project, or a person in the one at a path, with an id, or of the readers.

        `name` is what the caller calls itself. `register` makes a repository a project that is none yet. Raises
        NotAllowed for an agent under another name, NotFound for a project or name that does not exist, and BadInput
        if no project is named.
        """
        if speaker.run:
            found = await self.store.read(lambda store: get(store, Project, speaker.project))
            if name and str(Address.parse(name)) not in speaker.own_names:
                raise NotAllowed(f"You are {speaker.address}, and can't speak as {name}.", hint="Leave `from` out.")
            return CallerInProject(speaker=speaker, project=found)
        hint = ""
        if path and not project:
            found = await self._at(path, register=register)
        elif project:
            found = await self.store.read(lambda store: get(store, Project, project))
        else:
            found, hint = await self.store.read(partial(_project_of_readers, [*readers], task))
        if found.forgotten:
            raise NotFound(
                f"The project {found.name} was forgotten.", hint=f"`windlass init` in {found.path} begins anew."
            )
        claims = str(Address.parse(name)) if name else ""
        if claims in ("", str(HUMAN)):
            return CallerInProject(speaker=speaker, project=found, hint=hint)
        await self.directory.find(found, speaker, claims)
        return CallerInProject(speaker=speaker, project=found, claims=claims, hint=hint)

    async def _at(self, path: str, *, register: bool) -> Project:
        found = await self.projects.used_at(path) if register else await self.projects.known_at(path)
        if found is None:
            raise NotFound("This folder belongs to no project.", hint="Run `windlass init` there first.")
        return found

    async def here(self, speaker: Speaker, path: str) -> str:
        """The id of the project in which a caller stands, or nothing."""
        if speaker.run:
            return speaker.project
        found = await self.projects.known_at(path) if path else None
        return found.id if found else ""

    async def project_names(self, projects: Iterable[str]) -> dict[str, str]:
        """The name of each of these projects, by its id."""
        wanted = {*projects}
        known = await self.store.read(lambda store: [store.find(Project, key) for key in wanted])
        return {project.id: project.name for project in known if project}

    async def only_project(self) -> str:
        """The id of the only project there is, or nothing."""
        known = await self.store.read(lambda store: store.projects())
        return known[0].id if len(known) == 1 else ""

    async def reader(self, own: Speaker, name: str, path: str) -> Speaker:
        """Whose mail a caller may look at: one's own, or, for a person, that of any agent. Raises NotFound."""
        if own.run and name and str(Address.parse(name)) not in own.own_names:
            raise NotAllowed(f"You are {own.address}, and can't read as {name}.", hint="Leave the name out.")
        if own.run or name in ("", own.address):
            return own
        if path:
            project = await self._at(path, register=False)
            return Speaker(await self.directory.find(project, own, name), project.id)
        agent = await self.directory.check_agent(name)
        return Speaker(agent.id, agent.project)

    async def say(self, caller: CallerInProject, new: NewMessage) -> Sent:
        """Send a message for a caller. Raises what `Talk.say` raises."""
        sent = await self.talk.say(caller.speaker, replace(new, claims=caller.claims), caller.project)
        return replace(sent, hint=f"{caller.hint} {sent.hint}".strip())

    async def ask(
        self, caller: CallerInProject, body: str, *, agent: str = "", task: str = "", phase: str = "", key: str = ""
    ) -> Sent:
        """Ask an agent, whoever is at a task, or someone at a phase: of several, one who is running, then one idle.

        The same key finds the same question. Raises what `Talk.say` raises, and NotFound if nobody is at the task.
        """
        if sum(map(bool, (agent, task, phase))) != 1:
            raise BadInput("Say whom to ask: an agent, a task or a phase, and only one of them.")
        target = agent or await self.store.read(partial(_at_work, caller, task, phase, key))
        about = f"task/{task}" if task else f"phase/{phase}" if phase else ""
        return await self.say(caller, NewMessage(body=body, to=(target,), kind=Kind.ASK, key=key, about=about))


def _admitted(run: str, grant: Grant, key: str, store: Reading) -> Speaker:
    speaker = speaker_of(run, store)
    if not covers(grant, speaker.project, _owners(grant, key, speaker, store)):
        known = [agent.id for agent in store.agents(project=speaker.project)] if grant is Grant.AGENT else []
        raise NotFound(f"There is no {grant} {key[:200]}.", hint=f"{near_miss(key, known)} {NotFound.hint}".strip())
    return speaker


def _owners(grant: Grant, key: str, speaker: Speaker, store: Reading) -> set[str]:
    """The projects of what a call names: for a change's author also its own, which may be another than it lands in."""
    found: list[Agent | Task | Change | Message | None] = []
    match grant:
        case Grant.AGENT:
            found = [store.find(Agent, key)]
        case Grant.TASK:
            found = [store.find(Task, key)]
        case Grant.CONVERSATION:
            found = [store.find(Message, key)]
        case Grant.CHANGE:
            change = store.find(Change, key)
            found = [change, store.find(Agent, speaker.address) if change and change.agent == speaker.address else None]
    return {noun.project for noun in found if noun}


def _project_of_readers(readers: list[str], task: str, store: Reading) -> tuple[Project, str]:
    """The project of the agents whom a person names who stands in none, and a sentence that says so."""
    found = store.find(Task, task) if task else None
    names = [*readers, *([found.agent] if found and found.agent else [])]
    agents = [agent for name in names if (agent := store.find(Agent, name)) is not None]
    if len({agent.project for agent in agents}) != 1:
        raise BadInput(
            "It is not clear which project is meant: path is missing.",
            hint='Stand in a folder of the project. Over HTTP, name one: `?path=/folder`, or "path" in the body.',
        )
    project = get(store, Project, agents[0].project)
    verb = "is an agent" if len(agents) == 1 else "are agents"
    return project, f"{', '.join(agent.id for agent in agents)} {verb} of {project.name}, in {project.path}."


def _at_work(caller: CallerInProject, task: str, phase: str, key: str, store: Reading) -> str:
    """Whoever is at a task, or at one of a phase's: one who is running, then one who is idle; the caller last.

    The same key finds whoever was asked then.
    """
    own = caller.speaker.address
    known = store.keyed(own, key) if key else None
    if known and known.to:
        return known.to[0]
    project = caller.project.id
    inside = [inner for inner in store.unfinished_tasks(project=project) if phase and inner.parent == phase]
    found = [store.find(Task, task)] if task else inside
    names = [one.agent for one in found if one and one.agent and one.project == project]
    latest = store.latest_runs(names)
    names.sort(key=lambda name: (name == own, not (name in latest and latest[name].live)))
    if not names:
        raise NotFound(f"Nobody is at {task or phase}.", hint="`windlass list` shows who is at work.")
    return names[0]
