"""Put a change into the queue, and look back at those before it, within a transaction."""

from __future__ import annotations

from dataclasses import replace

from windlass.core.nouns.change import Change
from windlass.core.ports.store import Noun, Reading, Writing

PAST = 100
"""How many ended changes are counted to estimate how often checks fail."""


def queue_change(store: Writing, change: Change, *rows: Noun) -> Change:
    """Record a change at the end of the queue, together with other rows; a new one (without an id) gets its id."""
    queued = replace(change, id=change.id or store.next_id(Change), turn=store.last_seq() + 1)
    store.record("change.queued", queued.id, *rows, queued)
    return queued


def recent_changes(project: str, store: Reading) -> list[Change]:
    """Changes that ended lately, and those in the queue."""
    return [*store.changes(project=project, ended=True, limit=PAST), *store.changes(project=project)]
