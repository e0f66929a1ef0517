"""Knowing: shared text with a revision."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One revision of a text. Earlier revisions stay in the journal."""

    project: str
    name: str
    body: str
    author: str
    revision: int = 1
    written_at: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.project}/{self.name}"

    def revise(self, body: str, *, author: str, now: float) -> Document:
        return replace(self, body=body, author=author, revision=self.revision + 1, written_at=now)
