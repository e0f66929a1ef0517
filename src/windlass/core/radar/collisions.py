"""Which agents are about to collide, and in which files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations

from windlass.core.display import some
from windlass.core.radar import path_patterns


class Act(StrEnum):
    """What the radar does about a collision."""

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
    """Only the paths that their tasks declare overlap."""


_ORDER = tuple(Severity)


@dataclass(frozen=True, kw_only=True)
class QuickLook:
    """Work at one moment, compared with the commit of main that it began from."""

    head: str
    commit: str
    """A commit of the work with all uncommitted files; `Git.clash` can merge it."""
    tree: str
    base: str
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    edited: frozenset[str] = frozenset()
    kept: str = ""
    """Where its objects are, if not in the hub."""

    @cached_property
    def files(self) -> frozenset[str]:
        """All files that differ from the base."""
        return self.added | self.removed | self.edited

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder with a changed file."""
        return frozenset(folder for name in self.files for folder in _above(name))

    @cached_property
    def filled(self) -> frozenset[str]:
        """Every folder with a new file, near or far."""
        return frozenset(folder for name in self.added for folder in ("", *_above(name)))

    @cached_property
    def emptied(self) -> frozenset[str]:
        """Every folder with a removed file: if it was renamed, git moves new files of others along."""
        return frozenset(name.rpartition("/")[0] for name in self.removed)

    @property
    def work(self) -> tuple[str, str, str]:
        """The inputs of a merge: the same inputs give the same result."""
        return self.head, self.tree, self.base


def _above(name: str) -> Iterable[str]:
    parts = name.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """An agent at work: its last look, and the paths that its task declares."""

    agent: str
    look: QuickLook
    paths: tuple[str, ...] = ()
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collision:
    """A collision of two agents, or of one agent and main."""

    severity: Severity
    agents: tuple[str, ...]
    """Two agents; one, if it collides with main."""
    files: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """The declared paths, if nothing else overlaps."""
    sentence: str
    at: float = 0.0
    """The time of the older look."""

    @property
    def with_main(self) -> bool:
        return len(self.agents) == 1


def decide_pairs(tracks: Sequence[Track]) -> list[tuple[Track, Track]]:
    """The pairs that could collide; the others need no merge."""
    return [(one, other) for one, other in combinations(tracks, 2) if may_clash(one, other) or _declared(one, other)]


def may_clash(one: Track, other: Track) -> bool:
    """Whether git could find anything to merge: a file of both, a file where the other has a folder, or something new
    in a folder that the other has moved."""
    here, there = one.look, other.look
    return not (
        here.files.isdisjoint(there.files)
        and here.files.isdisjoint(there.folders)
        and here.folders.isdisjoint(there.files)
        and here.emptied.isdisjoint(there.filled)
        and here.filled.isdisjoint(there.emptied)
    )


def judge(one: Track, other: Track, clash: Sequence[str]) -> Collision | None:
    """Judge a pair, given the files that git could not merge."""
    names, at = (one.agent, other.agent), min(one.at, other.at)
    both = " and ".join(names)
    if clash:
        words = f"{both} conflict in {some(clash)}: whoever lands second has to merge."
        return Collision(severity=Severity.CONFLICT, agents=names, files=tuple(clash), sentence=words, at=at)
    if shared := tuple(sorted(one.look.files & other.look.files)):
        words = f"{both} both change {some(shared)}; for now that merges."
        return Collision(severity=Severity.OVERLAP, agents=names, files=shared, sentence=words, at=at)
    if paths := _declared(one, other):
        words = f"{both} are to change the same: {some(paths)}; nothing of it overlaps yet."
        return Collision(severity=Severity.DECLARED, agents=names, paths=paths, sentence=words, at=at)
    return None


def judge_main(track: Track, main: str, clash: Sequence[str]) -> Collision | None:
    """Judge an agent against main: only a conflict counts, the gate merges the rest."""
    if not clash:
        return None
    words = f"{track.agent} conflicts with {main} in {some(clash)}: {main} has moved since it began."
    names, files = (track.agent,), tuple(clash)
    return Collision(severity=Severity.CONFLICT, agents=names, files=files, sentence=words, at=track.at)


def weight(collision: Collision) -> tuple[int, int, tuple[str, ...]]:
    """Sort key: the worst first; of equal ones, the largest."""
    return _ORDER.index(collision.severity), -len(collision.files), collision.agents


def _declared(one: Track, other: Track) -> tuple[str, ...]:
    """The paths that one declares, and the other declares or has changed."""
    both = ((one, other), (other, one))
    paths = ((path, other) for one, other in both for path in one.paths)
    return tuple(dict.fromkeys(path for path, other in paths if first_meeting((path,), other.paths, other.look.files)))


def first_meeting(wanted: Sequence[str], paths: Sequence[str], files: Iterable[str]) -> str:
    """The first changed file, or else declared path, of another agent that meets the wanted paths; or nothing."""
    changed = sorted(file for file in files if any(path_patterns.names(path, file) for path in wanted))
    declared = (other for other in paths if any(path_patterns.meet(path, other) for path in wanted))
    return next(iter(changed), "") or next(declared, "")


def hold_reason(wanted: Sequence[str], other: str, paths: Sequence[str], files: Iterable[str] | None) -> str:
    """Why a task with these paths does not begin beside another agent's work, or nothing.

    `files` is None where that work has not been looked at yet.
    """
    if met := first_meeting(wanted, paths, files or ()):
        return f"held by the radar: {other} is at {met}"
    return f"waits for the radar to look at the work of {other}" if files is None else ""
