"""What the gate reads of the store."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.nouns.change import Change, CheckResult
from windlass.core.nouns.event import Event
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Reading, Store
from windlass.engine.gate.reviews import settled
from windlass.engine.projects.absences import noticed_at
from windlass.engine.records.changes import PAST
from windlass.engine.records.documents import text_of
from windlass.engine.records.lookup import get


class RecentChanges:
    """The changes that ended lately: read once, then kept current by the events."""

    def __init__(self, store: Store) -> None:
        self._ended: dict[str, dict[str, Change]] = {}
        """By project."""
        self._touched: dict[str, set[str]] = {}
        """By project: the changes of which events told since."""
        store.follow(self._hear)

    def of(self, project: str, store: Reading) -> list[Change]:
        """Changes that ended lately, the newest first."""
        ended = self._kept(project, store)
        newest = sorted(ended.values(), key=lambda change: (len(change.id), change.id), reverse=True)[:PAST]
        self._ended[project] = {change.id: change for change in newest}
        self._touched.pop(project, None)
        return newest

    def _kept(self, project: str, store: Reading) -> dict[str, Change]:
        touched = [store.find(Change, key) for key in self._touched.get(project, ())]
        changes = {change.id: change for change in touched if change}
        known = self._ended.get(project)
        if known is None or any(key in known and not change.ended for key, change in changes.items()):
            return {change.id: change for change in store.changes(project=project, ended=True, limit=PAST)}
        return known | {key: change for key, change in changes.items() if change.ended}

    def _hear(self, events: Sequence[Event]) -> None:
        for row in (row for event in events for row in event.became if row["noun"] == "change"):
            if row["project"] in self._ended:
                self._touched.setdefault(row["project"], set()).add(row["id"])


def look(store: Reading) -> tuple[list[tuple[Project, float | None]], list[Change], list[Task]]:
    """The projects, each with when its repository was seen to be gone; the queues; and the reviews that are over."""
    seen = [(project, noticed_at(store, project)) for project in store.projects()]
    return seen, store.changes(), settled(store)


def queue_of(project: str, store: Reading) -> tuple[Project, list[Change]]:
    """A project, and its queue."""
    return get(store, Project, project), store.changes(project=project)


def last_failure(change: str, store: Reading) -> tuple[CheckResult | None, str]:
    """The newest failed test with this change on top, and its output."""
    found = store.find(Change, change)
    failed = [check for check in found.checks if not check.passed] if found else []
    if found is None or not failed:
        return None, ""
    return failed[-1], text_of(store, f"{found.project}/{failed[-1].document}")
