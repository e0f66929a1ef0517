"""Merging onto main without a checkout, and putting a conflict into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import Conflict, Unfit
from windlass.git.files import shown
from windlass.git.program import ANY, GitProgram, Ran

LONGEST_TEXT = 8_000
_LARGEST_BLOB = 2 << 20
_AROUND = 3


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge: a tree, and the files in it that have conflicts."""

    tree: str
    files: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()


async def merge(git: GitProgram, hub: Path, main: str, head: str, *, apart: Mapping[str, str] | None = None) -> Merged:
    """Merge two commits of the hub. No merge driver is defined there, so none that a file names can execute.

    The result is written into the hub, or where `apart` says.
    """
    ran = await git.ours(hub, "merge-tree", "--write-tree", "--messages", "-z", main, head, extra=apart, ok=ANY)
    if ran.code not in (0, 1) and "unrelated histories" in ran.err:
        raise Unfit(
            "its history has no commit in common with main",
            hint="Put its commits onto main: git fetch origin && git rebase --root --onto origin/main",
        )
    if ran.code not in (0, 1):
        raise Conflict(f"The change cannot be merged: {ran.words}.")
    return _parse(ran)


async def explain(git: GitProgram, hub: Path, merged: Merged, main: str, head: str) -> str:
    """A conflict as its author needs it: which files, and both sides of each hunk."""
    names = [shown(file) for file in merged.files]
    text = f"{len(names)} file{'s' * (len(names) != 1)} in conflict with main: {', '.join(names)}.\n"
    text += "".join(f"{note}\n" for note in merged.notes)
    for name in merged.files:
        if len(text) > LONGEST_TEXT:
            break
        content = await _content(git, hub, merged.tree, name)
        content = content.replace(f"<<<<<<< {main}", "<<<<<<< main").replace(f">>>>>>> {head}", ">>>>>>> this change")
        if hunks := "\n…\n".join(_hunks(content.splitlines())):
            text += f"\n--- {shown(name)}\n{hunks}\n"
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "\n… (cut)\n"


async def _content(git: GitProgram, hub: Path, tree: str, name: bytes) -> str:
    entry = (await git.ours(hub, "ls-tree", "-z", tree, "--", name.decode("utf-8", "surrogateescape"))).names
    if not entry or b" blob " not in entry[0]:
        return ""
    blob = entry[0].split()[2].decode()
    said = await git.ours(hub, "cat-file", "blob", blob, limit=_LARGEST_BLOB, cut=True)
    return "" if b"\0" in said.out else said.out.decode("utf-8", "replace")


def _parse(ran: Ran) -> Merged:
    """Read what `merge-tree -z` says: the tree; mode, object, stage and name per conflict; then its messages."""
    parts = ran.out.split(b"\0")
    tree, rest = parts[0].decode(), parts[1:]
    if ran.code == 0:
        return Merged(tree)
    end = rest.index(b"")
    files = dict.fromkeys(entry.partition(b"\t")[2] for entry in rest[:end])
    return Merged(tree, tuple(files), tuple(_notes(rest[end + 1 :])))


def _notes(parts: list[bytes]) -> Iterator[str]:
    """The messages about conflicts; those about files that merged well are left out."""
    while len(parts) > 1 and parts[0].isdigit():
        count = int(parts[0])
        kind, words = (*parts[count + 1 : count + 3], b"", b"")[:2]
        if kind.startswith(b"CONFLICT"):
            yield shown(words).strip()
        parts = parts[count + 3 :]


def _hunks(lines: list[str]) -> Iterator[str]:
    """The parts of a merged file between conflict markers, with a few lines around."""
    start = None
    for number, line in enumerate(lines):
        if line.startswith("<<<<<<< ") and start is None:
            start = number
        elif line.startswith(">>>>>>> ") and start is not None:
            yield "\n".join(lines[max(0, start - _AROUND) : number + 1 + _AROUND])
            start = None
