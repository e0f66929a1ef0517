"""Which agents are about to collide, and on what. Pure; the radar's tick looks at their trees and carries it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations

from windlass.core.display import some
from windlass.core.radar import path_patterns


class Act(StrEnum):
    """What is done about a collision."""

    SHOW = "show"
    TELL = "tell"
    HOLD = "hold"


class Severity(StrEnum):
    """How bad a collision is, the worst first."""

    CONFLICT = "conflict"
    """As both are now, git can't merge them."""
    OVERLAP = "overlap"
    """Both change the same file, and for now it merges."""
    DECLARED = "declared"
    """Only what they are to change overlaps."""


_ORDER = tuple(Severity)


@dataclass(frozen=True, kw_only=True)
class QuickLook:
    """Work as it was at one moment, against the commit of main that it stands on."""

    head: str
    """The branch's commit."""
    commit: str
    """What holds the work with all that is not committed; it can be merged by `Git.clash`."""
    tree: str
    base: str
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    edited: frozenset[str] = frozenset()
    kept: str = ""
    """Where its objects are, if not in the hub."""

    @cached_property
    def files(self) -> frozenset[str]:
        """All that differs from its base."""
        return self.added | self.removed | self.edited

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that something of it is in."""
        return frozenset(each for name in self.files for each in _above(name))

    @cached_property
    def filled(self) -> frozenset[str]:
        """Every folder that something new is in, near or far."""
        return frozenset(each for name in self.added for each in ("", *_above(name)))

    @cached_property
    def emptied(self) -> frozenset[str]:
        """Every folder that something was taken out of: it may have been renamed, and then what is new there moves."""
        return frozenset(name.rpartition("/")[0] for name in self.removed)

    @property
    def work(self) -> tuple[str, str, str]:
        """What merging it depends on: while that is the same, so is what comes out."""
        return self.head, self.tree, self.base


def _above(name: str) -> Iterable[str]:
    parts = name.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """An agent at work: what it has changed, what it is to change, and when that was seen."""

    agent: str
    glimpse: QuickLook
    paths: tuple[str, ...] = ()
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collision:
    """What two agents, or one agent and main, are about to meet in."""

    severity: Severity
    agents: tuple[str, ...]
    """Two of them; one, where it collides with main."""
    files: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """What was declared, if that is all there is."""
    sentence: str
    at: float = 0.0
    """When the older of the two looks was taken."""

    @property
    def with_main(self) -> bool:
        return len(self.agents) == 1


def decide_pairs(tracks: Sequence[Track]) -> list[tuple[Track, Track]]:
    """The pairs that could collide at all: the others are not worth a merge."""
    return [(one, other) for one, other in combinations(tracks, 2) if may_clash(one, other) or _declared(one, other)]


def may_clash(one: Track, other: Track) -> bool:
    """Whether git could find anything to merge: a file of both, a file where the other has a folder, or something new
    in a folder that the other has moved."""
    here, there = one.glimpse, other.glimpse
    return not (
        here.files.isdisjoint(there.files)
        and here.files.isdisjoint(there.folders)
        and here.folders.isdisjoint(there.files)
        and here.emptied.isdisjoint(there.filled)
        and here.filled.isdisjoint(there.emptied)
    )


def judge(one: Track, other: Track, clash: Sequence[str]) -> Collision | None:
    """What a pair comes to, given the files that git could not merge."""
    names, at = (one.agent, other.agent), min(one.at, other.at)
    if clash:
        words = f"{_both(names)} conflict in {some(clash)}: whoever lands second has to merge."
        return Collision(severity=Severity.CONFLICT, agents=names, files=tuple(clash), sentence=words, at=at)
    if shared := tuple(sorted(one.glimpse.files & other.glimpse.files)):
        words = f"{_both(names)} both change {some(shared)}; for now that merges."
        return Collision(severity=Severity.OVERLAP, agents=names, files=shared, sentence=words, at=at)
    if paths := _declared(one, other):
        words = f"{_both(names)} are to change the same: {some(paths)}; nothing of it overlaps yet."
        return Collision(severity=Severity.DECLARED, agents=names, paths=paths, sentence=words, at=at)
    return None


def judge_main(track: Track, main: str, clash: Sequence[str]) -> Collision | None:
    """What an agent and main as it is now come to: only a conflict is worth a word, the gate merges the rest."""
    if not clash:
        return None
    words = f"{track.agent} conflicts with {main} in {some(clash)}: {main} has moved since it began."
    severity = Severity.CONFLICT
    return Collision(severity=severity, agents=(track.agent,), files=tuple(clash), sentence=words, at=track.at)


def rank(collisions: Iterable[Collision]) -> list[Collision]:
    """The worst first; of those that are alike, the largest."""
    return sorted(collisions, key=weight)


def weight(collision: Collision) -> tuple[int, int, tuple[str, ...]]:
    """What a collision's place in a list depends on."""
    return _ORDER.index(collision.severity), -len(collision.files), collision.agents


def _declared(one: Track, other: Track) -> tuple[str, ...]:
    """What one is to change, and the other is to change or has changed."""
    both = ((one, other), (other, one))
    return tuple(dict.fromkeys(path for mine, its in both for path in mine.paths if _in_the_way(path, its)))


def _in_the_way(path: str, other: Track) -> bool:
    return bool(first_meeting((path,), other.paths, other.glimpse.files))


def first_meeting(wanted: Sequence[str], paths: Sequence[str], files: Iterable[str]) -> str:
    """The first file, or else declared path, of another's that someone wants to change; nothing if there is none."""
    changed = sorted(file for file in files if any(path_patterns.names(path, file) for path in wanted))
    declared = (each for each in paths if any(path_patterns.meet(path, each) for path in wanted))
    return next(iter(changed), "") or next(declared, "")


def hold_reason(wanted: Sequence[str], other: str, paths: Sequence[str], files: Iterable[str] | None) -> str:
    """Why a task with these paths does not begin beside another agent's work; nothing if it may.

    `files` is None where that work has not been looked at yet.
    """
    if met := first_meeting(wanted, paths, files or ()):
        return f"held by the radar: {other} is at {met}"
    return f"waits for the radar to look at the work of {other}" if files is None else ""


def _both(names: tuple[str, str]) -> str:
    return f"{names[0]} and {names[1]}"
