"""What an instance shares, as files: what was said (channel.md), and a page that people edit, too (notes.md)."""

from __future__ import annotations

import asyncio
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
from windlass.core.ports.clock import Clock
from windlass.core.ports.store import Reading, Writing
from windlass.core.workflows.instance import Instance
from windlass.engine.messages.documents import LARGEST, NOTES, Documents
from windlass.engine.records import instances
from windlass.engine.records.documents import revised
from windlass.engine.records.messages import tell_person
from windlass.engine.troubles import Troubles

MOST = 20_000
"""How many messages channel.md shows: the last ones."""
LARGEST_CHANNEL = 64_000_000
MOST_KEPT = 1000
"""How many texts may be kept beside one revision of a page."""
QUIET = 0.2
"""Seconds without a change, after which what someone writes is taken to be whole."""

FORGOTTEN = 60.0
"""Seconds after which a file that nobody asks about is no longer remembered: it may be gone."""

_OURS = ".windlass/context/"
"""Where files are, if nothing else is said."""

Stir = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Sight:
    """How a file looked, since when, and when that was last asked."""

    looks: str
    since: float
    asked: float


class Stillness:
    """Tells when a file that others write has come to rest."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._seen: dict[str, _Sight] = {}

    def lasts(self, key: str, looks: str, stir: Stir, *, seconds: float = QUIET) -> bool:
        """Whether it has looked so for a moment; if not, `stir` is called when it may have. `looks` is a digest."""
        now = self.clock.monotonic()
        before = self._seen.get(key)
        since = before.since if before and before.looks == looks else now
        self._seen = {each: sight for each, sight in self._seen.items() if now - sight.asked < FORGOTTEN}
        self._seen[key] = _Sight(looks, since, now)
        if now - since >= seconds:
            return True
        asyncio.get_running_loop().call_later(seconds, stir)
        return False


class PageStep(Enum):
    """What is to be done about a page that is a file and a document."""

    NOTHING = auto()
    SHOW = auto()
    """Write the document into the file."""
    TAKE = auto()
    """Make the file the document's next revision."""
    CONFLICT = auto()
    """Both have changed."""


@dataclass(frozen=True, slots=True)
class Synced:
    """What a page was when its file and its document last agreed."""

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
    """What has a channel and pages: a project itself, or an instance."""

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
    """Whether a workflow's file wants them, and not only the custom of the house."""

    @property
    def pages(self) -> str:
        """What the names of its pages begin with."""
        return f"context/{self.name or 'main'}"

    @property
    def channel(self) -> str:
        return f"@{self.name}" if self.name else "main"

    @property
    def record(self) -> str:
        """The name of the document that says when file and page last agreed."""
        return f"system/notes/{self.name or 'main'}"


class Pages:
    """Keeps these files current; what a person writes into notes.md is a revision like any other."""

    def __init__(self, ports: Ports, documents: Documents, troubles: Troubles) -> None:
        self.store = ports.store
        self.chats = ports.chats
        self.clock = ports.clock
        self.documents = documents
        self.troubles = troubles
        self.stillness = Stillness(ports.clock)
        self._shown: dict[tuple[str, str], tuple[int, int]] = {}
        """By project and file: the number of the last message in it, and its size."""

    async def refresh(self, project: Project, stir: Stir, *, mirrored: bool) -> None:
        """Bring every file of a project up to date, and take in what people wrote.

        In a project that was never set up for it (`mirrored`), only the files that a workflow asks for.
        """
        sharing = await self.store.read(partial(_sharing, project))
        wanted = [each for each in sharing if mirrored or each.asked_for]
        if not mirrored and any(each.timeline.startswith(_OURS) or each.notes.startswith(_OURS) for each in wanted):
            await self._hide(project)
        for each in wanted:
            if each.timeline:
                with self.troubles.noted("chat"):
                    await self._channel(each)
            if each.notes:
                with self.troubles.noted("chat"):
                    await self._notes(each, stir)

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
        self._shown[key] = (_number(said[-1]) if said else after, size + len(_bytes(text)))

    async def _channel_anew(self, shared: Shared, key: tuple[str, str], name: str) -> None:
        """Write all of it, unless it only has to be added to."""
        path = shared.project.path
        said = await self.store.read(partial(_said, shared, 0))
        shown = [_entry(each) for each in said if _is_shown(each)]
        if not shown and not shared.started_at:
            if self.chats.look(path, name, 0, 0) is None:
                self._shown[key] = (_number(said[-1]) if said else 0, 0)
            return
        begin = [opening(_time(shared.started_at or said[0].sent_at))] if shared.name else []
        whole = _bytes(write_timeline([*begin, *shown]))
        found = self.chats.look(path, name, 0, LARGEST_CHANNEL)
        there = found.content if found else None
        if there != whole and not await self.chats.replace(path, name, whole.decode(), expecting=there):
            return
        self._shown[key] = (_number(said[-1]) if said else 0, len(whole))

    # ── notes.md ──

    async def _notes(self, shared: Shared, stir: Stir) -> None:
        path, name = shared.project.path, shared.notes
        found = self.chats.look(path, name, 0, LARGEST + 1)
        content = found.content if found else None
        document, synced = await self.store.read(partial(_page, shared))
        step = decide_page(synced, content, document)
        looks = _digest(content or b"")
        if step in (PageStep.TAKE, PageStep.CONFLICT) and not self.stillness.lasts(f"{path}/{name}", looks, stir):
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
                stir()
            case PageStep.NOTHING if document and content is not None and document.revision != synced.revision:
                await self._agree(shared, Synced(document.revision, _digest(content)))

    async def _write(self, shared: Shared, content: bytes, *, name: str = NOTES, revision: int) -> Document:
        human, text = Speaker(str(HUMAN)), _text(content)
        return await self.documents.write(
            human, shared.project.id, text, name=name, instance=shared.name, revision=revision
        )

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
        """Whether a file has this text and no other, now that it was written if it was not there."""
        found = self.chats.look(shared.project.path, file, 0, LARGEST + 1)
        if found is not None:
            return found.content == _bytes(text)
        return await self.chats.replace(shared.project.path, file, text, expecting=None)

    async def _agree(self, shared: Shared, synced: Synced, told: str = "") -> None:
        now = self.clock.now()

        def step(store: Writing) -> None:
            key = f"{shared.project.id}/{shared.record}"
            store.record("page.synced", key, revised(store, shared.project.id, shared.record, str(synced), now=now))
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
    started = {each.name: each for each in instances.of_project(store, project.id)}
    by_age = sorted(began, key=lambda name: started[name].started_at if name in started else began[name])
    home = _shared(project, "", None, 0.0)
    found = [home, *(_shared(project, each, started.get(each), began[each]) for each in by_age)]
    owner = {file: each.name for each in found for file in (each.timeline, each.notes) if file}
    own = {each.name: {file for file, name in owner.items() if name == each.name} for each in found}
    return [
        replace(
            each,
            timeline=each.timeline if each.timeline in own[each.name] else "",
            notes=each.notes if each.notes in own[each.name] else "",
        )
        for each in found
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
    """What is said to all who share the channel; not what is between two."""
    return not message.direct and message.kind is not Kind.NUDGE


def _page(shared: Shared, store: Reading) -> tuple[Document | None, Synced]:
    document = _document(shared, NOTES, store)
    record = store.find(Document, f"{shared.project.id}/{shared.record}")
    return document, Synced.parse(record.body if record else "")


def _document(shared: Shared, name: str, store: Reading) -> Document | None:
    return store.find(Document, f"{shared.project.id}/{shared.pages}/{name}")


def _entry(message: Message) -> Said:
    return Said(_time(message.sent_at), message.sender, harmless_lines(message.body))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def _number(message: Message) -> int:
    return int(message.id[1:])


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
