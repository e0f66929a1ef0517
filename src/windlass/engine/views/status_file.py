"""What a project's own folder shows: `process-status.json`, kept current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from windlass.core import policy
from windlass.core.address import Address
from windlass.core.nouns.agent import Agent, Status
from windlass.core.nouns.event import Event
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.core.render import ServerEntry, process_status, status_entry
from windlass.engine.records.messages import current_task
from windlass.engine.troubles import Troubles
from windlass.engine.views.status import PAGE

STATUS_FILE = "process-status.json"


def utc(seconds: float) -> str:
    """A time as programs write it, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class ShownAgent:
    """What the file says about one agent, and where it stands in it."""

    retired: bool
    created_at: float
    text: str


class StatusFiles:
    """Writes a file when what it shows has changed. What others write there is overwritten.

    All is read once; then an agent is looked at when an event told of it, its runs, tasks or changes.
    """

    def __init__(self, ports: Ports, troubles: Troubles) -> None:
        self.store = ports.store
        self.workdirs = ports.workdirs
        self.troubles = troubles
        self.pid = ports.pid
        self.started_at = ports.clock.now()
        self._projects: list[Project] | None = None
        """Nothing: they are to be read."""
        self._shown: dict[str, dict[str, ShownAgent]] = {}
        """By project and agent."""
        self._touched: set[str] = set()
        ports.store.follow(self._hear)

    async def tick(self) -> bool:
        """Bring every project's file up to date."""
        await self._refresh(Status.RUNNING)
        return False

    async def _refresh(self, server: Status) -> None:
        if self._projects is None:
            self._projects = await self.store.read(lambda store: store.projects())
        mirrored = [project for project in self._projects if self.workdirs.has_mirrors(project.path)]
        if not mirrored:
            return
        shown, last_event = await self.store.read(partial(self._look, mirrored))
        entry = ServerEntry(server, self.pid, self.started_at, last_event)
        for project in mirrored:
            with self.troubles.noted("status"):
                text = process_status(entry, shown[project.id], utc=utc)
                if not self.workdirs.shows(project.path, STATUS_FILE, text):
                    await self.workdirs.mirror(project.path, STATUS_FILE, text)

    async def leave(self) -> None:
        """Say that the daemon has stopped, as far as that is possible."""
        with self.troubles.noted("status"):
            await self._refresh(Status.STOPPED)

    def _look(self, projects: Sequence[Project], store: Reading) -> tuple[dict[str, list[str]], float]:
        """What each project's file says about its agents; and when the last event was."""
        for agent in filter(None, (store.find(Agent, key) for key in self._touched)):
            if agent.project in self._shown:
                self._shown[agent.project][agent.id] = _show(agent, store)
        for project in projects:
            if project.id not in self._shown:
                self._shown[project.id] = {agent.id: _show(agent, store) for agent in _agents(project.id, store)}
        last = store.events(after=store.last_seq() - 1, limit=1)
        self._touched.clear()
        return {each.id: self._texts(each.id) for each in projects}, last[-1].time if last else self.started_at

    def _texts(self, project: str) -> list[str]:
        """Those at work, newest first, then the last that have finished; older ones are not kept."""
        every = sorted(self._shown[project].items(), key=lambda each: each[1].created_at, reverse=True)
        at_work = [each for each in every if not each[1].retired]
        kept = [*at_work, *[each for each in every if each[1].retired][:PAGE]]
        self._shown[project] = dict(kept)
        return [shown.text for _, shown in kept]

    def _hear(self, events: Sequence[Event]) -> None:
        if any(row["noun"] == "project" for event in events for row in event.became):
            self._projects = None
        if self._shown:
            self._touched |= {agent for event in events for row in event.became if (agent := _agent_of(row))}


def _agents(project: str, store: Reading) -> list[Agent]:
    return [*store.agents(project=project), *store.agents(project=project, retired=True, limit=PAGE)]


def _agent_of(row: Mapping[str, Any]) -> str:
    """The agent that a row is about; nobody for one that no status depends on."""
    if row["noun"] == "agent":
        return str(Address(row["name"], row.get("instance", "")))
    return str(row["agent"]) if row["noun"] in ("run", "task", "change") else ""


def _show(agent: Agent, store: Reading) -> ShownAgent:
    run, task = store.latest_runs([agent.id]).get(agent.id), current_task(store, agent.id)
    change = store.change_of_task(task.id) if task else None
    status = policy.status_of(run, task, change, persistent=agent.persistent)
    text = status_entry(agent, status, run, task, utc=utc)
    return ShownAgent(agent.retired_at is not None, agent.created_at, text)
