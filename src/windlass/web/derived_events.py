"""Events that no journal holds, because they are derived: an agent's new status, and the files it has changed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from windlass.engine import Engine
from windlass.engine.views.status import View

SOON = 0.1
"""The least seconds between two looks, however much happens."""
EVERY = 2.0
"""Seconds until the files are looked at again, even if the bell did not ring."""

_WAYS = ("added", "edited", "removed")


class DerivedEvents:
    """Tells one subscriber each status and file list that differs from the last one told; of one project, or of all."""

    def __init__(self, engine: Engine, project: str = "") -> None:
        self.engine = engine
        self.project = project
        self._statuses: dict[str, str] = {}
        self._files: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._next = self._next_files = 0.0
        self._put_off = False

    async def news(self) -> list[dict[str, Any]]:
        """The events since the last call; none yet, if that was less than SOON ago."""
        clock = self.engine.ports.clock
        self._put_off = clock.monotonic() < self._next
        if self._put_off:
            return []
        lines = await self._new_statuses()
        if clock.monotonic() >= self._next_files:
            lines += await self._new_files()
            self._next_files = clock.monotonic() + EVERY
        self._next = clock.monotonic() + SOON
        return [{"time": clock.now(), **line} for line in lines]

    async def wait(self, ear: asyncio.Event) -> None:
        """Wait for the bell, or until it is time to look again: after SOON, if the last look was put off."""
        rest = self._next - self.engine.ports.clock.monotonic() if self._put_off else EVERY
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, rest)):
                await ear.wait()

    async def _new_statuses(self) -> list[dict[str, Any]]:
        views = await self.engine.status.every(retired=True, project=self.project)
        lines = [self._status(view) for view in views if self._is_news(view)]
        self._statuses = {view.agent.id: view.status for view in views}
        return lines

    def _is_news(self, view: View) -> bool:
        """Whether to tell a status. An agent that had retired before the first look is not told."""
        known = self._statuses.get(view.agent.id)
        return known != view.status and (known is not None or view.agent.retired_at is None)

    def _status(self, view: View) -> dict[str, Any]:
        return {
            "kind": "status.changed",
            "subject": view.agent.id,
            "status": view.status,
            "was": self._statuses.get(view.agent.id),
            "evidence": view.evidence,
            "task": view.task.id if view.task else None,
            "project": view.project,
        }

    async def _new_files(self) -> list[dict[str, Any]]:
        # no look of our own: the radar's tick looks while someone asks
        picture = await self.engine.radar.picture(self.project, look=False)
        found = {
            (target.project.name, target.agent.id): {way: sorted(getattr(seen.look, way)) for way in _WAYS}
            for target, seen in picture.looks
            if seen and seen.look
        }
        nothing: dict[str, list[str]] = {way: [] for way in _WAYS}
        fresh = {key: now for key, now in found.items() if now != self._files.get(key, nothing)}
        self._files = found
        return [
            {"kind": "files.changed", "subject": agent, "project": project, **now}
            for (project, agent), now in fresh.items()
        ]
