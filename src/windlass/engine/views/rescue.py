"""Work that was saved: what there is, what is in it, and bringing it back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from windlass.core.errors import NotFound, Unavailable
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.ports import Ports
from windlass.core.ports.archive import Contents, Saved
from windlass.core.ports.store import Reading

MOST = 200
"""How many saved worktrees one list describes: the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One saved worktree among all of them."""

    number: int
    """Its place in order of saving: 1 is the oldest."""
    project: Project
    saved: Saved
    saved_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Saved work, the newest first."""

    items: tuple[tuple[Item, Contents], ...]
    left_out: int
    """How many older ones there are."""
    since: int | None
    """The number after which they begin; None if there are none."""


class Rescue:
    """Finds saved work by number, name or ref, and gives it back to the person."""

    def __init__(self, ports: Ports) -> None:
        self.store = ports.store
        self.git = ports.git

    async def every(self, *, project: str = "", landed: bool = False, since: int = 0, limit: int = MOST) -> Listing:
        """The saved work that main does not have, or all with `landed`; a part of it, older than number `since`."""
        found = [each for each in reversed(await self._all()) if project in ("", each.project.id)]
        older = [each for each in found if not since or each.number < since]
        wanted = [each for each in older if each.saved.sound and (landed or not each.saved.landed)]
        described = [(each, await self._contents(each)) for each in wanted[:limit]]
        items = tuple(each for each in described if landed or each[1].new or each[0].saved.also)
        left_out = len(wanted[limit:])
        return Listing(items=items, left_out=left_out, since=described[-1][0].number if left_out else None)

    async def show(self, key: str, *, project: str = "") -> tuple[Item, Contents]:
        """One saved worktree, of all projects or of one, and what is in it."""
        item = await self._find(key, project)
        return item, await self._contents(item)

    async def difference(self, item: Item, *, exact: bool) -> bytes:
        """Its diff since its branch left main."""
        return await self.git.archive.difference(item.project, item.saved.commit, exact=exact)

    async def to_branch(self, key: str, branch: str) -> tuple[Item, str]:
        """Put it on a new branch in the user's repository. Returns the branch."""
        item = await self._find(key)
        branch = branch or f"rescue/{item.saved.id.replace('/', '-').replace('@', '.')}"
        await self.git.archive.to_branch(item.project, item.saved.commit, branch)
        return item, branch

    async def to_folder(self, key: str, folder: str) -> Item:
        """Write its files into a new folder."""
        item = await self._find(key)
        await self.git.archive.to_folder(item.project, item.saved.commit, folder)
        return item

    async def _contents(self, item: Item) -> Contents:
        return await self.git.archive.contents(item.project, item.saved.commit)

    async def _find(self, key: str, project: str = "") -> Item:
        for item in await self._all():
            if project not in ("", item.project.id):
                continue
            if key in (str(item.number), item.saved.id, item.saved.ref):
                return _sound(item)
            if key in item.saved.also:
                return _sound(_part(item, key))
        raise NotFound(f"Nothing is saved as {key[:200]}.", hint="Run `windlass rescue list --all` to see what is.")

    async def _all(self) -> list[Item]:
        """All that is saved, the oldest first."""
        projects = await self.store.read(lambda store: store.projects(forgotten=True))
        found = [(project, each) for project in projects for each in await self.git.archive.saved(project)]
        times = await self.store.read(partial(_times, [saved for _, saved in found]))
        order = sorted(zip(times, found, strict=True), key=lambda each: (each[0], each[1][1].ref))
        return [
            Item(number=number, project=project, saved=saved, saved_at=at)
            for number, (at, (project, saved)) in enumerate(order, start=1)
        ]


def newest_removal(saved: Iterable[Saved]) -> Saved | None:
    """What was saved when a worktree was last removed, if it ever was."""
    return max((each for each in saved if each.removed), key=lambda each: int(each.label), default=None)


def _times(every: Sequence[Saved], store: Reading) -> list[float]:
    """When each of these was saved, as far as the store knows."""
    by_agent: dict[str, list[Saved]] = {}
    for saved in every:
        by_agent.setdefault(saved.agent, []).append(saved)
    newest = {agent: newest_removal(removals) for agent, removals in by_agent.items()}
    return [_time(saved, store, newest=saved == newest[saved.agent]) for saved in every]


def _time(saved: Saved, store: Reading, *, newest: bool) -> float:
    if saved.removed:
        agent = store.find(Agent, saved.agent) if newest else None
        return agent.retired_at if agent and agent.retired_at is not None else saved.made_at
    run = store.find(Run, saved.label)
    return (run.ended_at or run.starting_at) if run else saved.made_at


def _part(item: Item, ref: str) -> Item:
    """One of the further refs that were saved with a worktree, such as a stash."""
    label = f"{item.saved.label}-{ref.rpartition('/')[2]}"
    return replace(item, saved=replace(item.saved, ref=ref, commit=item.saved.also[ref], label=label, also={}))


def _sound(item: Item) -> Item:
    if not item.saved.sound:
        raise Unavailable(
            f"{item.saved.ref} leads to a commit that is not there.",
            hint="Run `windlass doctor --check`, and put the hub back from a copy.",
        )
    return item
