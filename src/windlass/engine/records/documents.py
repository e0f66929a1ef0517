"""Write a document within a transaction: its first revision, or the next."""

from __future__ import annotations

from windlass.core.address import SYSTEM
from windlass.core.nouns.document import Document
from windlass.core.ports.store import Reading


def revised(store: Reading, project: str, name: str, body: str, *, now: float, author: str = str(SYSTEM)) -> Document:
    """The next revision of a document, to be recorded by the caller; the first one, if the store has none."""
    blank = Document(project=project, name=name, body="", author=author, revision=0)
    return (store.find(Document, blank.id) or blank).revise(body, author=author, now=now)
