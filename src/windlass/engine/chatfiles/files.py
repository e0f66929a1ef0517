"""Where chat is written: the file in a project's checkout, and the one in each agent's worktree."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial

from windlass.core import codec
from windlass.core.address import HUMAN, SYSTEM
from windlass.core.display import harmless_lines
from windlass.core.messages.chat_file import ReadPosition
from windlass.core.messages.chat_line import EVERYONE, digest_of, write_line
from windlass.core.messages.members import Speaker
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.engine.records.documents import revised
from windlass.engine.records.messages import home_channel, put

LONGEST_SHOWN = 16_000
"""Characters of a message that a chat file shows."""
AT_FIRST = 50
"""How many messages a new file shows of those that were sent before."""
AT_ONCE = 200
_UNSHOWN = (Kind.NUDGE, Kind.COMMENT)


@dataclass(frozen=True, slots=True)
class ChatFile:
    """One file, and who writes it."""

    project: Project
    agent: Agent | None
    """Nobody: then it is a person's."""
    top: str

    @property
    def key(self) -> str:
        """The name of the document that holds how far it was read."""
        return f"system/chat/{self.writer}"

    @property
    def mark(self) -> str:
        """The id of that document. The keys of the file's messages begin with it: no other file's do."""
        return f"{self.project.id}/{self.key}"

    @property
    def writer(self) -> str:
        return self.agent.id if self.agent else str(HUMAN)

    @property
    def names(self) -> tuple[str, ...]:
        """What the writer may be called there."""
        return (self.agent.id, self.agent.name) if self.agent else ()

    def wrote(self, message: Message) -> bool:
        """Whether a message came from this very file."""
        return message.sender == self.writer and message.key.startswith(f"{self.mark} ")


async def corners(ports: Ports) -> list[ChatFile]:
    """Every file that is read and written: of projects that were set up for it, and of all agents."""
    projects = {each.id: each for each in await ports.store.read(lambda store: store.projects())}
    agents = await ports.store.read(lambda store: store.agents()) if projects else []
    own = [
        ChatFile(project, None, project.path)
        for project in projects.values()
        if ports.workdirs.has_mirrors(project.path)
    ]
    sites = ((projects[key], agent) for agent in agents for key in agent.projects if key in projects)
    return own + _there(ports, sites)


async def of_speaker(ports: Ports, speaker: Speaker, project: Project) -> list[ChatFile]:
    """The files of whoever speaks: of the agent, one for each of its projects; or the person's in this project."""
    if speaker.run:
        return _there(ports, await ports.store.read(partial(_own_sites, speaker)))
    return [ChatFile(project, None, project.path)] if ports.workdirs.has_mirrors(project.path) else []


def _there(ports: Ports, sites: Iterable[tuple[Project, Agent]]) -> list[ChatFile]:
    """The files of those whose worktrees are there."""
    there = ((project, agent) for project, agent in sites if ports.git.has_worktree(project, agent))
    return [ChatFile(project, agent, ports.git.worktree_path(project, agent)) for project, agent in there]


def _own_sites(speaker: Speaker, store: Reading) -> list[tuple[Project, Agent]]:
    agent = store.find(Agent, speaker.address)
    return [(project, agent) for key in agent.projects if (project := store.find(Project, key))] if agent else []


def newest(projects: Collection[str], store: Reading) -> dict[str, int]:
    """The number of the last message in each project."""
    last = ((project, store.said(project, limit=1)) for project in projects)
    return {each: number(said[0]) if said else 0 for each, said in last}


def stored(corner: ChatFile, store: Reading) -> tuple[str, int]:
    """How far a file was read, as it was kept; and for one that is new, after which message it begins."""
    found = store.find(Document, corner.mark)
    if found:
        return found.body, 0
    said = store.said(corner.project.id, viewer=_viewer(corner), home=_home(corner, store), limit=AT_FIRST + 1)
    return "", number(said[0]) if len(said) > AT_FIRST else 0


def revived(text: str, begin: int) -> ReadPosition:
    """The place that was kept so."""
    return codec.revive(ReadPosition, codec.decode(text)) if text else ReadPosition(shown=begin)


def save(store: Writing, corner: ChatFile, place: ReadPosition, now: float) -> None:
    """Within a transaction: keep how far a file was read."""
    text = codec.encode(place).decode()
    store.record("chat.read", corner.mark, revised(store, corner.project.id, corner.key, text, now=now))


def begin(project: Project, agent: Agent, now: float, store: Writing) -> None:
    """Within a transaction: an agent gets a new worktree, and so a new file. What is written there was never read."""
    corner = ChatFile(project, agent, "")
    before = revived(*stored(corner, store))
    if before.anew() != before:
        save(store, corner, before.anew(), now)


def speaker_of(corner: ChatFile, store: Reading) -> Speaker:
    """Who speaks there: the person, or the agent in its latest run."""
    if corner.agent is None:
        return Speaker(str(HUMAN))
    latest = store.latest_runs([corner.agent.id]).get(corner.agent.id)
    return Speaker(corner.agent.id, corner.agent.project, latest.id if latest else "")


def unshown(corner: ChatFile, place: ReadPosition, store: Reading) -> list[Message]:
    """What was said since the last look, as far as the writer of a file may see it."""
    after, viewer = place.shown, _viewer(corner)
    if len(place.owed) >= AT_ONCE:
        return []
    home = _home(corner, store)
    return store.said(corner.project.id, viewer=viewer, home=home, after=after, limit=AT_ONCE, newest=False)


def _home(corner: ChatFile, store: Reading) -> str:
    return home_channel(store, corner.agent) if corner.agent else "main"


def shows(corner: ChatFile, message: Message) -> bool:
    """Whether a message belongs into a file: what agents and people say to one another, elsewhere."""
    return message.sender != str(SYSTEM) and message.kind not in _UNSHOWN and not corner.wrote(message)


def line_of(message: Message) -> tuple[str, str]:
    """The line that shows a message, and its digest."""
    claimed = f"(claims to be {message.claims}) " if message.claims else ""
    body = harmless_lines(f"{claimed}{message.body}")
    if len(body) > LONGEST_SHOWN:
        body = f"{body[:LONGEST_SHOWN]}\n… ({len(body)} characters; `windlass peek --full` shows them all)"
    text = write_line(message.sender, (EVERYONE,) if message.broadcast else message.to, body)
    return text, digest_of(text)


def found(keys: list[str], store: Reading) -> list[Message]:
    """These messages, as far as they are there."""
    several = map(partial(store.find, Message), keys)
    return [each for each in several if each is not None]


def blame(store: Writing, corner: ChatFile, place: ReadPosition, body: str, now: float) -> ReadPosition:
    """Within a transaction: tell the writer of a file what is wrong with it. Returns the place with that in mind."""
    message = Message(
        id=store.next_id(Message),
        channel=_home(corner, store),
        sender=str(SYSTEM),
        to=(corner.writer,),
        body=body,
        kind=Kind.SAY if corner.agent else Kind.REPORT,
        sent_at=now,
        project=corner.project.id,
        direct=True,
    )
    place = place.blamed(number(message), pardoned=_is_pardoned(store, corner, place))
    put(store, message, quiet=message.to if place.is_hopeless else ())
    return place


def _is_pardoned(store: Reading, corner: ChatFile, place: ReadPosition) -> bool:
    """Whether a person has written to the writer of a file since it was last told what is wrong there."""
    if corner.agent is None:
        return True
    return bool(store.wrote_to(corner.writer, [str(HUMAN)], after=place.blamed_at))


def number(message: Message) -> int:
    """A message's place in the log."""
    return int(message.id[1:])


def _viewer(corner: ChatFile) -> str:
    return corner.agent.id if corner.agent else ""
