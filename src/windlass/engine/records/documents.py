"""The text of a document, and its next revision within a transaction."""

from __future__ import annotations

from windlass.core.address import SYSTEM
from windlass.core.nouns.document import Document
from windlass.core.ports.store import Reading


def text_of(store: Reading, key: str) -> str:
    """The text of the document with that id, or nothing."""
    found = store.find(Document, key)
    return found.body if found else ""


def revised(store: Reading, project: str, name: str, body: str, *, now: float, author: str = str(SYSTEM)) -> Document:
    """The next revision of a document, to be recorded by the caller; the first one, if the store has none."""
    blank = Document(project=project, name=name, body="", author=author, revision=0)
    return (store.find(Document, blank.id) or blank).revise(body, author=author, now=now)
