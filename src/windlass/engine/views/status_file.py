"""What a project's own folder shows: `process-status.json`, kept current."""

from __future__ import annotations

from datetime import UTC, datetime

from windlass.core.nouns.agent import Status
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.render import ServerEntry, process_status
from windlass.engine.troubles import Troubles
from windlass.engine.views.status import Statuses

STATUS_FILE = "process-status.json"


def utc(seconds: float) -> str:
    """A time as programs write it, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class StatusFiles:
    """Writes a file when what it shows has changed. What others write there is overwritten."""

    def __init__(self, ports: Ports, status: Statuses, troubles: Troubles) -> None:
        self.store = ports.store
        self.workdirs = ports.workdirs
        self.status = status
        self.troubles = troubles
        self.pid = ports.pid
        self.started_at = ports.clock.now()

    async def refresh(self, server: Status = Status.RUNNING) -> None:
        """Bring every project's files up to date."""
        for project in await self.store.read(lambda store: store.projects()):
            with self.troubles.noted("tidy"):
                if self.workdirs.has_mirrors(project.path):
                    await self._refresh(project, server)

    async def leave(self) -> None:
        """Say that the daemon has stopped, as far as that is possible."""
        with self.troubles.noted("tidy"):
            await self.refresh(Status.STOPPED)

    async def _refresh(self, project: Project, server: Status) -> None:
        views = await self.status.every(retired=True, project=project.id)
        last = await self.store.read(lambda store: store.events(after=store.last_seq() - 1, limit=1))
        seen = ServerEntry(server, self.pid, self.started_at, last[-1].time if last else self.started_at)
        text = process_status(seen, ((view.agent, view.status, view.run, view.task) for view in views), utc=utc)
        if not self.workdirs.shows(project.path, STATUS_FILE, text):
            await self.workdirs.mirror(project.path, STATUS_FILE, text)
