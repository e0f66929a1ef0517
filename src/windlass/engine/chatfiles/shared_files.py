"""The files that an instance shares: channel.md shows its messages, notes.md is a page that people edit, too."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from functools import partial

from windlass.core.address import HUMAN
from windlass.core.agents.definition import is_home
from windlass.core.display import harmless_lines
from windlass.core.errors import Unavailable
from windlass.core.messages.channel_file import Said, opening, write_timeline
from windlass.core.messages.chat_file import Slice
from windlass.core.messages.members import Speaker
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.workflows.instance import Instance
from windlass.engine.chatfiles.quiet_files import QuietFiles
from windlass.engine.messages.documents import LARGEST, NOTES, Documents
from windlass.engine.messages.log import place
from windlass.engine.records.messages import tell_person
from windlass.engine.troubles import Troubles

MOST = 20_000
"""How many messages channel.md shows: the last ones."""
LARGEST_CHANNEL = 64_000_000
MOST_KEPT = 1000
"""How many texts may be kept beside one revision of a page."""
_OURS = ".windlass/context/"
"""Where files are, if nothing else is said."""


class PageStep(Enum):
    """The next step for a page that is both a file and a document."""

    NOTHING = auto()
    SHOW = auto()
    """Write the document into the file."""
    TAKE = auto()
    """Make the file the document's next revision."""
    CONFLICT = auto()
    """Both have changed."""


@dataclass(frozen=True, slots=True)
class Synced:
    """A page as it was when its file and its document last agreed."""

    revision: int = 0
    digest: str = ""
    refused: str = ""
    """The digest of what the file has held since, and was too large; its writer was told."""

    @classmethod
    def parse(cls, text: str) -> Synced:
        revision, *digests = text.split(" ")
        return cls(int(revision), *digests) if text else cls()

    def __str__(self) -> str:
        return f"{self.revision} {self.digest} {self.refused}".removesuffix(" ")


def decide_page(synced: Synced, content: bytes | None, document: Document | None) -> PageStep:
    """Which of the two has changed since they agreed."""
    if document is None:
        return PageStep.TAKE if (content or b"").strip() else PageStep.NOTHING
    if content is None:
        return PageStep.SHOW
    if content == _bytes(document.body):
        return PageStep.NOTHING
    edited, written = _digest(content) != synced.digest, document.revision != synced.revision
    if edited and written:
        return PageStep.CONFLICT
    return PageStep.TAKE if edited else PageStep.SHOW if written else PageStep.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A project or an instance, with the files of its channel and its page."""

    project: Project
    name: str = ""
    """Nothing: those of the project itself."""
    started_at: float = 0.0
    """When its first agent came; nothing, if it has none."""
    timeline: str = ""
    """The file that shows what was said, seen from the top of the project; nothing: none does."""
    notes: str = ""
    """The file of the page, in the same way."""
    asked_for: bool = False
    """Whether a workflow's file asks for these files; else they are in their usual folder."""

    @property
    def pages(self) -> str:
        """What the names of its pages begin with."""
        return f"context/{self.name or 'main'}"

    @property
    def channel(self) -> str:
        return f"@{self.name}" if self.name else "main"

    @property
    def mark(self) -> str:
        """The key of its position: when file and page last agreed."""
        return f"{self.project.id}/system/notes/{self.name or 'main'}"


class Pages:
    """Keeps these files current; a text that a person writes into notes.md becomes a revision of the page."""

    def __init__(self, ports: Ports, documents: Documents, troubles: Troubles) -> None:
        self.store = ports.store
        self.chats = ports.chats
        self.clock = ports.clock
        self.documents = documents
        self.troubles = troubles
        self.quiet = QuietFiles(ports.clock)
        self._sharing: dict[str, list[Shared]] = {}
        """By project."""
        self._shown: dict[tuple[str, str], tuple[int, int]] = {}
        """By project and file: the number of the last message in it, and its size."""

    async def refresh(self, project: Project, look_again: Callable[[], None], *, mirrored: bool, anew: bool) -> None:
        """Bring every file of a project up to date, and take in what people wrote.

        In a project that was never set up for it (`mirrored`), only the files that a workflow asks for. `anew`: its
        agents, instances or pages may have changed.
        """
        if anew or project.id not in self._sharing:
            self._sharing[project.id] = await self.store.read(partial(_sharing, project))
        wanted = [shared for shared in self._sharing[project.id] if mirrored or shared.asked_for]
        if not mirrored and any(f.startswith(_OURS) for shared in wanted for f in (shared.timeline, shared.notes)):
            await self._hide(project)
        for shared in wanted:
            if shared.timeline:
                with self.troubles.noted("chat"):
                    await self._channel(shared)
            if shared.notes:
                with self.troubles.noted("chat"):
                    await self._notes(shared, look_again)

    async def _hide(self, project: Project) -> None:
        """Let git ignore our folder, where no `windlass init` has done so."""
        name = f"{_OURS}.gitignore"
        if self.chats.look(project.path, name, 0, 0) is None:
            await self.chats.replace(project.path, name, "*\n", expecting=None)

    # ── channel.md ──

    async def _channel(self, shared: Shared) -> None:
        name = shared.timeline
        key = (shared.project.id, f"{shared.name} {name}")
        after, size = self._shown.get(key, (0, -1))
        found = self.chats.look(shared.project.path, name, 0, 0)
        if size < 0 or (found.size if found else 0) != size:
            await self._channel_anew(shared, key, name)
            return
        said = await self.store.read(partial(_said, shared, after))
        text = write_timeline(map(_entry, filter(_is_shown, said)))
        if text and not await self.chats.append(shared.project.path, name, text):
            return
        self._shown[key] = (place(said[-1].id) if said else after, size + len(_bytes(text)))

    async def _channel_anew(self, shared: Shared, key: tuple[str, str], name: str) -> None:
        """Write all of it, unless it only has to be added to."""
        path = shared.project.path
        said = await self.store.read(partial(_said, shared, 0))
        shown = [_entry(message) for message in said if _is_shown(message)]
        if not shown and not shared.started_at:
            if self.chats.look(path, name, 0, 0) is None:
                self._shown[key] = (place(said[-1].id) if said else 0, 0)
            return
        begin = [opening(_time(shared.started_at or said[0].sent_at))] if shared.name else []
        whole = _bytes(write_timeline([*begin, *shown]))
        found = self.chats.look(path, name, 0, LARGEST_CHANNEL)
        there = found.content if found else None
        if there != whole and not await self.chats.replace(path, name, whole.decode(), expecting=there):
            return
        self._shown[key] = (place(said[-1].id) if said else 0, len(whole))

    # ── notes.md ──

    async def _notes(self, shared: Shared, look_again: Callable[[], None]) -> None:
        path, name = shared.project.path, shared.notes
        found = self.chats.look(path, name, 0, LARGEST + 1)
        content = found.content if found else None
        document, synced = await self.store.read(partial(_page, shared))
        step = decide_page(synced, content, document)
        looks = _digest(content or b"")
        if step in (PageStep.TAKE, PageStep.CONFLICT) and not self.quiet.is_quiet(f"{path}/{name}", looks, look_again):
            return
        if found and step in (PageStep.TAKE, PageStep.CONFLICT) and len(_bytes(_text(found.content))) > LARGEST:
            await self._refuse(shared, synced, found)
            return
        match step:
            case PageStep.SHOW if document:
                if await self.chats.replace(path, name, document.body, expecting=content):
                    await self._agree(shared, Synced(document.revision, _digest(_bytes(document.body))))
            case PageStep.TAKE if content is not None:
                written = await self._write(shared, content, revision=document.revision if document else 0)
                await self._agree(shared, Synced(written.revision, _digest(content)))
            case PageStep.CONFLICT if document and content is not None:
                await self._keep_both(shared, document, content)
                look_again()
            case PageStep.NOTHING if document and content is not None and document.revision != synced.revision:
                await self._agree(shared, Synced(document.revision, _digest(content)))

    async def _write(self, shared: Shared, content: bytes, *, name: str = NOTES, revision: int) -> Document:
        where = {"name": name, "instance": shared.name}
        person = Speaker(str(HUMAN))
        return await self.documents.write(person, shared.project.id, _text(content), **where, revision=revision)

    async def _refuse(self, shared: Shared, synced: Synced, found: Slice) -> None:
        """Leave a text that is too large where it is, and tell the person once."""
        refused = _digest(b"%d %b" % (found.size, found.content))
        if refused == synced.refused:
            return
        size = max(found.size, len(_bytes(_text(found.content))))
        told = (
            f"{shared.notes} is not shared as it is now: it has {size} bytes, and a page may have at most {LARGEST}."
            " Your text is kept in this file, but nobody else sees it, and the file does not show what others write."
            " Make it smaller, for example by moving a part of it into another file."
        )
        await self._agree(shared, replace(synced, refused=refused), told)

    async def _keep_both(self, shared: Shared, document: Document, content: bytes) -> None:
        """Keep a person's text beside the page that someone else has written meanwhile, and tell them."""
        name, kept = await self._keep(shared, document.revision, content)
        told = (
            f"Your edit of {shared.notes} and revision {document.revision}, which {document.author} wrote meanwhile,"
            f" are in conflict. The file shows theirs; your text is kept as the document {name}, and in {kept}."
            " Take over from there what is to stay."
        )
        # no such revision: the document counts as newer, and is shown
        await self._agree(shared, Synced(-1, _digest(content)), told)

    async def _keep(self, shared: Shared, revision: int, content: bytes) -> tuple[str, str]:
        """Keep a text as a document and as a file, under a name that has no other; returns what both are called."""
        for number in range(1, MOST_KEPT):
            mark = f"conflict-{revision}" if number == 1 else f"conflict-{revision}-{number}"
            name, file = f"{NOTES}.{mark}", f"{shared.notes.removesuffix('.md')}.{mark}.md"
            page = await self.store.read(partial(_document, shared, name))
            if (page is None or page.body == _text(content)) and await self._holds(shared, file, _text(content)):
                await self._write(shared, content, name=name, revision=page.revision if page else 0)
                return name, file
        raise Unavailable(
            f"Your edit of {shared.notes} can't be kept beside revision {revision}: too many are there.",
            hint="Remove the files of conflicts that are settled.",
        )

    async def _holds(self, shared: Shared, file: str, text: str) -> bool:
        """Whether a file has exactly this text; a missing file is written."""
        found = self.chats.look(shared.project.path, file, 0, LARGEST + 1)
        if found is not None:
            return found.content == _bytes(text)
        return await self.chats.replace(shared.project.path, file, text, expecting=None)

    async def _agree(self, shared: Shared, synced: Synced, told: str = "") -> None:
        now = self.clock.now()

        def step(store: Writing) -> None:
            store.set_position(shared.mark, str(synced))
            if told:
                tell_person(store, told, channel=shared.channel, project=shared.project.id, now=now, direct=True)

        await self.store.write(step)


def _sharing(project: Project, store: Reading) -> list[Shared]:
    """The project itself, and every instance that has an agent or a page. Of two with one file, the later shows it."""
    agents = store.agents(project=project.id)
    pages = [document.name.split("/")[1] for document in store.documents(project.id, "context/")]
    began: dict[str, float] = {page: 0.0 for page in pages if page != "main"}
    for agent in agents:
        if not is_home(agent.instance, project.name):
            began[agent.instance] = min(began.get(agent.instance) or agent.created_at, agent.created_at)
    started = {instance.name: instance for instance in store.instances(project=project.id)}
    by_age = sorted(began, key=lambda name: started[name].started_at if name in started else began[name])
    found = [_shared(project, "", None, 0.0)]
    found += [_shared(project, name, started.get(name), began[name]) for name in by_age]
    owner = {file: shared.name for shared in found for file in (shared.timeline, shared.notes) if file}
    return [
        replace(
            shared,
            timeline=shared.timeline if owner.get(shared.timeline) == shared.name else "",
            notes=shared.notes if owner.get(shared.notes) == shared.name else "",
        )
        for shared in found
    ]


def _shared(project: Project, name: str, started: Instance | None, since: float) -> Shared:
    """What is shared under a name: where its workflow's file says, or in `.windlass/context`."""
    folder = f"{_OURS}{name or 'main'}"
    files = started.files if started else {"channel": f"{folder}/channel.md", "document": f"{folder}/{NOTES}.md"}
    return Shared(
        project=project,
        name=name,
        started_at=since,
        timeline=files.get("channel", ""),
        notes=files.get("document", ""),
        asked_for=started is not None,
    )


def _said(shared: Shared, after: int, store: Reading) -> list[Message]:
    return store.said(shared.project.id, channel=shared.channel, after=after, limit=MOST)


def _is_shown(message: Message) -> bool:
    """Whether channel.md shows a message: one that is for all in the channel."""
    return not message.direct and message.kind is not Kind.REMINDER


def _page(shared: Shared, store: Reading) -> tuple[Document | None, Synced]:
    document = _document(shared, NOTES, store)
    return document, Synced.parse(store.position(shared.mark))


def _document(shared: Shared, name: str, store: Reading) -> Document | None:
    return store.find(Document, f"{shared.project.id}/{shared.pages}/{name}")


def _entry(message: Message) -> Said:
    return Said(_time(message.sent_at), message.sender, harmless_lines(message.body))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
