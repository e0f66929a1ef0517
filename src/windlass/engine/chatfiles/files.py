"""chat.md: the one in a project's checkout, and one in each agent's worktree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from windlass.core import codec
from windlass.core.address import HUMAN, SYSTEM
from windlass.core.display import harmless_lines
from windlass.core.messages.chat_file import ReadPosition
from windlass.core.messages.chat_line import EVERYONE, digest_of, write_line
from windlass.core.messages.members import Speaker
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Outcome
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.engine.messages.log import place
from windlass.engine.records.messages import home_channel, put, tell_person

LONGEST_SHOWN = 16_000
"""Characters of a message that a chat file shows."""
AT_FIRST = 50
"""How many messages a new file shows of those that were sent before."""
AT_ONCE = 200
_UNSHOWN = (Kind.REMINDER, Kind.COMMENT)


@dataclass(frozen=True, slots=True)
class ChatFile:
    """One chat.md, and who writes it."""

    project: Project
    agent: Agent | None
    """Nobody: a person writes it."""
    top: str

    @property
    def mark(self) -> str:
        """The key of its position. The keys of the file's messages begin with it: no other file's do."""
        return f"{self.project.id}/system/chat/{self.writer}"

    @property
    def writer(self) -> str:
        return self.agent.id if self.agent else str(HUMAN)

    @property
    def viewer(self) -> str:
        """Whose view of the log the file shows; nothing: a person's, who sees everything."""
        return self.agent.id if self.agent else ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the writer may use for itself."""
        return (self.agent.id, self.agent.name) if self.agent else ()

    def wrote(self, message: Message) -> bool:
        """Whether a message came from this very file."""
        return message.sender == self.writer and message.key.startswith(f"{self.mark} ")


async def chat_files(ports: Ports) -> tuple[list[Project], list[ChatFile]]:
    """The projects, and every file that is read and written: of those that were set up for it, and of all agents."""
    projects, agents = await ports.store.read(lambda store: (store.projects(), store.agents()))
    known = {project.id: project for project in projects}
    own = [ChatFile(project, None, project.path) for project in projects if ports.workdirs.has_mirrors(project.path)]
    sites = [(known[key], agent) for agent in agents for key in agent.projects if key in known]
    return projects, own + await _there(ports, sites)


async def of_speaker(ports: Ports, speaker: Speaker, project: Project) -> list[ChatFile]:
    """The files of whoever speaks: of the agent, one for each of its projects; or the person's in this project."""
    if speaker.run:
        return await _there(ports, await ports.store.read(partial(_own_sites, speaker)))
    return [ChatFile(project, None, project.path)] if ports.workdirs.has_mirrors(project.path) else []


async def _there(ports: Ports, sites: Iterable[tuple[Project, Agent]]) -> list[ChatFile]:
    """The files of those whose worktrees are there."""
    there = [(project, agent) for project, agent in sites if await ports.git.has_worktree(project, agent)]
    return [ChatFile(project, agent, ports.git.worktree_path(project, agent)) for project, agent in there]


def _own_sites(speaker: Speaker, store: Reading) -> list[tuple[Project, Agent]]:
    agent = store.find(Agent, speaker.address)
    return [(project, agent) for key in agent.projects if (project := store.find(Project, key))] if agent else []


def look_at_log(
    known: Sequence[tuple[ChatFile, ReadPosition]], store: Reading
) -> tuple[dict[str, int], dict[str, list[Message]]]:
    """The number of the last message in each project; and by each file's mark, what was said since its position."""
    projects = {file.project.id for file, _ in known}
    newest = {key: place(said[0].id) if (said := store.said(key, limit=1)) else 0 for key in projects}
    return newest, {
        file.mark: unshown(file, position, store) if position.shown < newest[file.project.id] else []
        for file, position in known
    }


def load(file: ChatFile, store: Reading) -> tuple[ReadPosition, int]:
    """How far a file was read, with all that it owes since; and the last message that it showed by the stored position.

    What it owes, a daemon that has died may have added already: the reader knows it again."""
    position = _stored(file, store)
    said = unshown(file, position or _new(file, store), store)
    return owing(file, position or _new(file, store), said), position.shown if position else -1


def owing(file: ChatFile, position: ReadPosition, said: Sequence[Message], newest: int = 0) -> ReadPosition:
    """The same, when it is to show these messages, which are all up to the newest."""
    new = (message for message in said if shows(file, message))
    shown = max(position.shown, newest, *(place(message.id) for message in said[-1:]))
    owed = (*position.owed, *((line_of(message)[1], message.id) for message in new))
    return replace(position, shown=shown, owed=owed)


def _stored(file: ChatFile, store: Reading) -> ReadPosition | None:
    kept = store.position(file.mark)
    return codec.revive(ReadPosition, codec.decode(kept)) if kept else None


def _new(file: ChatFile, store: Reading) -> ReadPosition:
    """A new file shows only the last few messages that were sent before."""
    said = store.said(file.project.id, viewer=file.viewer, home=_home(file, store), limit=AT_FIRST + 1)
    return ReadPosition(shown=place(said[0].id) if len(said) > AT_FIRST else 0)


def save(store: Writing, file: ChatFile, position: ReadPosition) -> None:
    """Within a transaction: keep how far a file was read."""
    store.set_position(file.mark, codec.encode(position).decode())


def begin(project: Project, agent: Agent, store: Writing) -> None:
    """Within a transaction: an agent gets a new worktree, and so a new file of which nothing was read."""
    file = ChatFile(project, agent, "")
    before = _stored(file, store)
    if before and before.anew() != before:
        save(store, file, before.anew())


def speaker_of(file: ChatFile, store: Reading) -> tuple[Speaker, bool]:
    """Who speaks in a file: the person, or the agent in its latest run; and whether that run was stopped."""
    if file.agent is None:
        return Speaker(str(HUMAN)), False
    latest = store.latest_runs([file.agent.id]).get(file.agent.id)
    stopped = latest is not None and (bool(latest.stopping) or latest.outcome is Outcome.STOPPED)
    return Speaker(file.agent.id, file.agent.project, latest.id if latest else ""), stopped


def unshown(file: ChatFile, position: ReadPosition, store: Reading) -> list[Message]:
    """The messages since the last look that the writer of a file may see; none while many are still owed."""
    if len(position.owed) >= AT_ONCE:
        return []
    which = {"viewer": file.viewer, "home": _home(file, store)}
    return store.said(file.project.id, **which, after=position.shown, limit=AT_ONCE, newest=False)


def _home(file: ChatFile, store: Reading) -> str:
    return home_channel(store, file.agent) if file.agent else "main"


def shows(file: ChatFile, message: Message) -> bool:
    """Whether a file shows a message: one between agents and people, that was not written in this file."""
    return message.sender != str(SYSTEM) and message.kind not in _UNSHOWN and not file.wrote(message)


def line_of(message: Message) -> tuple[str, str]:
    """The line that shows a message, and its digest."""
    claimed = f"(claims to be {message.claims}) " if message.claims else ""
    body = harmless_lines(f"{claimed}{message.body}")
    if len(body) > LONGEST_SHOWN:
        body = f"{body[:LONGEST_SHOWN]}\n… ({len(body)} characters; `windlass peek --full` shows them all)"
    text = write_line(message.sender, (EVERYONE,) if message.broadcast else message.to, body)
    return text, digest_of(text)


def owed(position: ReadPosition, store: Reading) -> list[Message]:
    """The messages that are still to be written into a file."""
    return [message for _, key in position.owed if (message := store.find(Message, key)) is not None]


def tell_of_rest(store: Writing, file: ChatFile, body: str, now: float) -> None:
    """Within a transaction: tell the person that some of a file is not sent."""
    tell_person(store, body, channel=_home(file, store), project=file.project.id, now=now, direct=True)


def tell_writer(store: Writing, file: ChatFile, position: ReadPosition, body: str, now: float) -> ReadPosition:
    """Within a transaction: tell the writer of a file what is wrong with it. Returns the new position."""
    message = Message(
        id=store.next_id(Message),
        channel=_home(file, store),
        sender=str(SYSTEM),
        to=(file.writer,),
        body=body,
        kind=Kind.SAY if file.agent else Kind.REPORT,
        sent_at=now,
        project=file.project.id,
        direct=True,
    )
    heard_person = not file.agent or bool(store.wrote_to(file.writer, [str(HUMAN)], after=position.blamed_at))
    position = position.blamed(place(message.id), pardoned=heard_person)
    put(store, message, quiet=message.to if position.is_hopeless else ())
    return position
