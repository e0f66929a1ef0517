"""Shared pages: text with a revision, of a project or of an instance."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from windlass.core.address import check_name
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound
from windlass.core.messages.members import Speaker
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.document import Document
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.engine.confinement import Confinements
from windlass.engine.records.instances import check_pages
from windlass.engine.records.lookup import get
from windlass.engine.records.messages import home_channel

NOTES = "notes"
LARGEST = 4_000_000
Make = Callable[[Document | None, Reading], str]
"""The new text of a page, from the page as it was."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Documents:
    """Pages that all in a project, or in an instance, may read and write."""

    def __init__(self, ports: Ports, confinement: Confinements) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.confinement = confinement

    async def instance(self, speaker: Speaker, wanted: str) -> str:
        """The instance whose pages a speaker may see: an agent its own, a person any. Raises NotAllowed."""
        wanted = wanted.removeprefix("@")
        if speaker.is_person:
            return wanted
        home = await self.store.read(partial(_home, speaker))
        own = home.removeprefix("@") if home.startswith("@") else ""
        if wanted and wanted != own:
            raise NotAllowed(f"You do not belong to {wanted}, and can't see its documents.", hint="Name no instance.")
        return own

    async def read(self, project: str, name: str = NOTES, *, instance: str = "", revision: int = 0) -> Document:
        """A page as it is now, or as it was at a revision. Raises NotFound."""
        key = f"{project}/{stored_name(name, instance)}"

        def question(store: Reading) -> Document:
            found = store.find(Document, key)
            if found is None:
                raise NotFound(
                    f"There is no document {name} here.", hint="`windlass context document list` shows which there are."
                )
            if not revision:
                return found
            for page in store.revisions(key):
                if page.revision == revision:
                    return page
            raise NotFound(f"{name} has no revision {revision}.", hint="See `windlass context document history`.")

        return await self.store.read(question)

    async def every(self, project: str, *, instance: str = "") -> list[Document]:
        """Every page of a project or an instance, by name."""
        begin = _folder(instance)
        found = await self.store.read(lambda store: store.documents(project, begin))
        return sorted(found, key=lambda page: page.name)

    async def history(self, project: str, name: str = NOTES, *, instance: str = "") -> list[Document]:
        """Every revision that a page had, oldest first."""
        now = await self.read(project, name, instance=instance)
        return await self.store.read(lambda store: store.revisions(now.id))

    async def write(
        self,
        speaker: Speaker,
        project: str,
        body: str,
        *,
        name: str = NOTES,
        instance: str = "",
        revision: int | None = None,
    ) -> Document:
        """Write a page anew. Given a revision, only if it still is that one: then nobody's text is overwritten.

        Raises Conflict if it is not."""
        text = await self._words(speaker, project, body)

        def made(before: Document | None, store: Reading) -> str:
            if revision and before is None:
                raise _no_document(name, [each.name for each in store.documents(project, _folder(instance))])
            current = before.revision if before else 0
            if revision is not None and revision != current:
                raise Conflict(
                    f"The document {name} has revision {current} by now, not {revision}"
                    + (f": {before.author} wrote it since." if before else "."),
                    hint=f"Read it again, take in what is new, and write it with revision {current}.",
                )
            return text

        return await self._revise(speaker, project, name, instance, made)

    async def append(
        self, speaker: Speaker, project: str, text: str, *, name: str = NOTES, instance: str = ""
    ) -> Document:
        """Add to the end of a page, after everything that others add meanwhile."""
        words = await self._words(speaker, project, text)

        def made(before: Document | None, _store: Reading) -> str:
            body = before.body if before else ""
            return body + ("\n" if body and not body.endswith("\n") else "") + words

        return await self._revise(speaker, project, name, instance, made)

    async def _words(self, speaker: Speaker, project: str, text: str) -> str:
        """A text without the secrets of the run that writes it."""
        if not speaker.run:
            return text
        run, found = await self.store.read(lambda store: (store.find(Run, speaker.run), store.find(Project, project)))
        return (await self.confinement.redactor(run, found)).whole(text) if run and found else text

    async def _revise(self, speaker: Speaker, project: str, name: str, instance: str, made: Make) -> Document:
        page = Document(
            project=project,
            name=stored_name(name, instance),
            body="",
            author=speaker.address,
            revision=0,
            written_at=self.clock.now(),
        )
        return await self.store.write(partial(_revised, page, made))


def _revised(page: Document, made: Make, store: Writing) -> Document:
    """Within a transaction: write the next revision of a page; `page` says which, by whom and when."""
    get(store, Project, page.project)
    before = store.find(Document, page.id)
    body = made(before, store)
    if len(body.encode("utf-8", "surrogatepass")) > LARGEST:
        raise BadInput(f"A document has at most {LARGEST} bytes.", hint="Begin another one.")
    if before is not None and before.body == body:
        return before
    after = (before or page).revise(body, author=page.author, now=page.written_at)
    store.record("document.written", after.id, after)
    return after


def _home(speaker: Speaker, store: Reading) -> str:
    """The channel of an agent, which must share documents. Raises NotAllowed."""
    agent = store.find(Agent, speaker.address)
    if agent is None:
        return "main"
    check_pages(store, agent)
    return home_channel(store, agent)


def _no_document(name: str, known: Sequence[str]) -> Conflict:
    near = near_miss(name, [page.rpartition("/")[2] for page in known])
    return Conflict(
        f"There is no document {name} yet, so it has no revision that could be replaced.",
        hint=f"{near} To begin it, write it with revision 0, or without one.".strip(),
    )


def _folder(instance: str) -> str:
    return f"context/{check_name(instance) if instance else 'main'}/"


def stored_name(name: str, instance: str) -> str:
    """The name under which a page is kept."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name[:100]!r} is no name for a document.", hint="It has letters, digits, dots, hyphens and underscores."
        )
    return f"{_folder(instance)}{name}"
