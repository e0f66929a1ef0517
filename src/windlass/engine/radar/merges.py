"""Test-merge each pair of agents' trees; reuse results whose inputs have not changed."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.errors import Conflict
from windlass.core.nouns.project import Project
from windlass.core.ports.git import Git
from windlass.core.radar import collisions
from windlass.core.radar.collisions import Collision, QuickLook, Track

Work = tuple[str, str, str]
Clashes = dict[tuple[Work, Work], tuple[str, ...]]
"""The files in which two works can't be merged, by both of them."""
Mains = dict[tuple[str, str], QuickLook]
"""Main's changes, by the commit they start from and main's tip."""


class Collisions:
    """Judges pairs, and remembers the results of each project's present pairs."""

    def __init__(self, git: Git) -> None:
        self.git = git
        self._clashes: dict[str, Clashes] = {}
        self._mains: dict[str, Mains] = {}

    async def among(self, project: Project, tracks: Sequence[Track]) -> list[Collision]:
        """Every collision in one project, the worst first."""
        kept: Clashes = {}
        found = [
            collisions.judge(one, other, await self._clash(project, one, other, kept))
            for one, other in collisions.decide_pairs(tracks)
        ]
        found += await self._with_main(project, tracks, kept)
        self._clashes[project.id] = kept
        return sorted((collision for collision in found if collision), key=collisions.weight)

    async def _with_main(self, project: Project, tracks: Sequence[Track], kept: Clashes) -> list[Collision | None]:
        """Judge each agent against main, where main has moved since the agent began."""
        tip = await self.git.main(project)
        known, mains = self._mains.get(project.id, {}), Mains()
        found = []
        for track in tracks:
            key = (track.look.base, tip)
            if track.look.base != tip and track.look.files:
                mains[key] = mains.get(key) or known.get(key) or await self.git.since(project, key[0])
                main = Track(agent=project.main, look=mains[key])
                found.append(collisions.judge_main(track, project.main, await self._clash(project, main, track, kept)))
        self._mains[project.id] = mains
        return found

    async def _clash(self, project: Project, one: Track, other: Track, kept: Clashes) -> tuple[str, ...]:
        """The files in which two works can't be merged; remembered, while both are unchanged."""
        if not collisions.may_clash(one, other):
            return ()
        key = (one.look.work, other.look.work)
        known = self._clashes.get(project.id, {}).get(key)
        kept[key] = await self._merge(project, one.look, other.look) if known is None else known
        return kept[key]

    async def _merge(self, project: Project, one: QuickLook, other: QuickLook) -> tuple[str, ...]:
        try:
            return await self.git.clash(project, one, other)
        except Conflict as error:  # they can't be merged at all, such as histories that have nothing in common
            return tuple(sorted(one.files & other.files)) or (str(error),)
