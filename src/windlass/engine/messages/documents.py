"""Shared pages: text with a revision, of a project or of an instance."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from windlass.core.address import check_name
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.document import Document
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.ports import Ports
from windlass.core.ports.store import Writing
from windlass.engine.bell import Bell
from windlass.engine.confinement import Confinements
from windlass.engine.messages.directory import Speaker
from windlass.engine.records.instances import check_pages
from windlass.engine.records.lookup import project_here
from windlass.engine.records.messages import home_channel

NOTES = "notes"
LARGEST = 4_000_000
MOST = 10_000
Make = Callable[[Document | None], str]
"""The text that a page is to have, from what it was."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Documents:
    """What all in a project, or in an instance, may read and write."""

    def __init__(self, ports: Ports, bell: Bell, fences: Confinements) -> None:
        self.store = ports.store
        self.clock = ports.clock
        self.bell = bell
        self.fences = fences

    async def instance(self, speaker: Speaker, wanted: str) -> str:
        """Whose pages: an agent's own instance's, and no others; a person may look at any."""
        wanted = wanted.removeprefix("@")
        if speaker.is_person:
            return wanted
        agent = await self.store.read(lambda store: store.find(Agent, speaker.address))
        if agent is not None:
            await self.store.read(lambda store: check_pages(store, agent))
        home = await self.store.read(lambda store: home_channel(store, agent)) if agent else "main"
        own = home.removeprefix("@") if home.startswith("@") else ""
        if wanted and wanted != own:
            raise NotAllowed(f"You do not belong to {wanted}, and can't see its documents.", hint="Name no instance.")
        return own

    async def read(self, project: str, name: str = NOTES, *, instance: str = "") -> Document:
        """A page as it is now."""
        key = stored_name(name, instance)
        found = await self.store.read(lambda store: store.find(Document, f"{project}/{key}"))
        if found is None:
            raise NotFound(
                f"There is no document {name} here.", hint="`windlass context document list` shows which there are."
            )
        return found

    async def every(self, project: str, *, instance: str = "") -> list[Document]:
        """Every page, by name."""
        begin = _folder(instance)
        found = await self.store.read(lambda store: store.documents(project, begin))
        return sorted(found, key=lambda each: each.name)

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
        """Write a page anew. Given a revision, only if it still is that one: then nobody's text is overwritten."""
        text = await self._words(speaker, project, body)

        def made(before: Document | None) -> str:
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
        """Add to the end of a page; what others add meanwhile stays."""
        words = await self._words(speaker, project, text)

        def made(before: Document | None) -> str:
            body = before.body if before else ""
            return body + ("\n" if body and not body.endswith("\n") else "") + words

        return await self._revise(speaker, project, name, instance, made)

    async def _words(self, speaker: Speaker, project: str, text: str) -> str:
        """What is to be written, without an agent's secrets."""
        run = await self.store.read(lambda store: store.find(Run, speaker.run)) if speaker.run else None
        found = await self.store.read(lambda store: store.find(Project, project))
        return self.fences.blotter(run, found).whole(text) if run and found else text

    async def _revise(self, speaker: Speaker, project: str, name: str, instance: str, made: Make) -> Document:
        page = Document(
            project=project,
            name=stored_name(name, instance),
            body="",
            author=speaker.address,
            revision=0,
            written_at=self.clock.now(),
        )
        written = await self.store.write(partial(_revised, page, made))
        self.bell.ring()
        return written


def _revised(page: Document, made: Make, store: Writing) -> Document:
    """Within a transaction: what a page becomes; `page` says which, by whom and when."""
    project_here(store, page.project)
    before = store.find(Document, page.id)
    body = made(before)
    if len(body.encode("utf-8", "surrogatepass")) > LARGEST:
        raise BadInput(f"A document has at most {LARGEST} bytes.", hint="Begin another one.")
    if before is not None and before.body == body:
        return before
    after = (before or page).revise(body, author=page.author, now=page.written_at)
    store.record("document.written", after.id, after)
    return after


def _folder(instance: str) -> str:
    return f"context/{check_name(instance) if instance else 'main'}/"


def stored_name(name: str, instance: str) -> str:
    """The name under which a page is kept."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name[:100]!r} is no name for a document.", hint="It has letters, digits, dots, hyphens and underscores."
        )
    return f"{_folder(instance)}{name}"
