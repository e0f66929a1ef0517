"""Git's objects in memory: trees are maps from path to content, commits have parents, and files merge as a whole."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from windlass.core.radar.collisions import QuickLook

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FakeCommit:
    """What stands in a commit."""

    tree: str
    parents: tuple[str, ...]
    message: str
    made_at: float
    number: int
    """Its place in order of making: no commit is younger than those that stand on it."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What merging two commits gave: the files, and those of them that both sides changed."""

    files: Files
    conflicts: tuple[str, ...] = ()


class Objects:
    """Every tree and commit there is, by name."""

    def __init__(self) -> None:
        self.commits: dict[str, FakeCommit] = {}
        self._trees: dict[str, Files] = {}
        self._histories: dict[str, frozenset[str]] = {}

    def write_tree(self, files: Files) -> str:
        """Keep files as they are now; the same files have the same name."""
        name = hashlib.sha1(repr(sorted(files.items())).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if name not in self._trees:
            self._trees[name] = dict(files)
        return name

    def commit(self, files: Files, parents: tuple[str, ...], message: str, now: float) -> str:
        """Make a commit. No two are the same, as if the clock had moved between them."""
        made = FakeCommit(self.write_tree(files), parents, message, now, len(self.commits))
        name = hashlib.sha1(repr(made).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        self.commits[name] = made
        return name

    def holding(self, files: Files, head: str, message: str, now: float) -> str:
        """A commit on top of a branch that holds these files; the branch itself, if it does."""
        same = self.write_tree(files) == self.tree(head)
        return head if same else self.commit(files, (head,), message, now)

    def files(self, name: str) -> Files:
        """The files of a commit or of a tree."""
        return self._trees[self.commits[name].tree if name in self.commits else name]

    def tree(self, commit: str) -> str:
        return self.commits[commit].tree

    def history(self, commit: str) -> frozenset[str]:
        """A commit and all that it stands on."""
        if commit not in self._histories:
            parents = [self.history(parent) for parent in self.commits[commit].parents]
            self._histories[commit] = frozenset((commit,)).union(*parents)
        return self._histories[commit]

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether a commit has another one in its history, or is that one."""
        return ancestor in self.history(commit)

    def beyond(self, known: str, head: str) -> tuple[str, ...]:
        """The commits of a branch that another has not, newest first."""
        own = self.history(head) - self.history(known)
        return tuple(sorted(own, key=lambda each: -self.commits[each].number))

    def base(self, one: str, other: str) -> str:
        """Where two branches parted; nothing if they have nothing in common."""
        shared = self.history(one) & self.history(other)
        return max(shared, key=lambda each: self.commits[each].number, default="")

    def differing(self, before: str, after: str) -> tuple[str, ...]:
        """The files that two commits or trees do not have alike."""
        return different(self.files(before), self.files(after))

    def merge(self, ours: str, theirs: str) -> Merged:
        """Merge two commits: of each file, the side that changed it; a conflict where both did."""
        common = self.base(ours, theirs)
        base: Files = self.files(common) if common else {}
        here, there = self.files(ours), self.files(theirs)
        changed = [each for each in different(base, there) if here.get(each) != there.get(each)]
        conflicts = tuple(each for each in changed if here.get(each) != base.get(each))
        files = {**here, **{each: there[each] for each in changed if each in there}}
        gone = [each for each in changed if each not in there]
        return Merged({name: text for name, text in files.items() if name not in gone}, conflicts)

    def glimpse(self, base: str, *, head: str, commit: str) -> QuickLook:
        """What a commit holds, against the one that it stands on."""
        before, after = self.files(base), self.files(commit)
        names = different(before, after)
        return QuickLook(
            head=head,
            commit=commit,
            tree=self.tree(commit),
            base=base,
            added=frozenset(name for name in names if name not in before),
            removed=frozenset(name for name in names if name not in after),
            edited=frozenset(name for name in names if name in before and name in after),
        )

    def difference(self, before: str, after: str) -> str:
        """What lies between two commits or trees, as text."""
        return "".join(_lines(self.files(before), self.files(after)))


def different(before: Files, after: Files) -> tuple[str, ...]:
    """The names of the files that two sets of files do not have alike."""
    names: Iterable[str] = before.keys() | after.keys()
    return tuple(sorted(name for name in names if before.get(name) != after.get(name)))


def _lines(before: Files, after: Files) -> Iterator[str]:
    for name in different(before, after):
        old, new = (side.get(name, "").splitlines(keepends=True) for side in (before, after))
        yield f"diff --git a/{name} b/{name}\n"
        yield from difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
