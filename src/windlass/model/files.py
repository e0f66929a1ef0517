"""Tools to read, write, edit and list files, only in the run's folders, with answers of limited length."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.system.files import NotPlain, read_file

MOST_LINES, LONGEST_LINE, MOST_LETTERS = 2000, 2000, 60_000
"""Limits of one answer about a file."""
LARGEST = 5_000_000
"""Bytes of a file that is edited, or looked at from the beginning."""
MOST_ENTRIES = 500
MOST_LOOKED_AT = 50_000
_GIT = ".git"


class AllowedPaths:
    """The folders of a run. Paths are relative to the first; a link that leads out of them is refused."""

    def __init__(self, folders: Sequence[str], *, output: str = "") -> None:
        self.top = Path(folders[0]).resolve()
        self.roots = tuple(dict.fromkeys(Path(folder).resolve() for folder in folders))
        self.output = Path(self.top, output).resolve() if output else None
        """The only folder that may be written; None: all of them."""

    def readable(self, path: str) -> Path:
        """The real path of a file that exists in one of the folders."""
        found = self._inside(path)
        if not found.exists():
            raise NotFound(f"There is no {path}.")
        return found

    def writable(self, path: str) -> Path:
        """The real path of a file that may be written."""
        found = self._inside(path)
        if self.output is not None and not found.is_relative_to(self.output):
            raise NotAllowed(f"You may only read; you can write below {self.shown(self.output)} and nowhere else.")
        if any(_GIT in found.relative_to(root).parts for root in self.roots if found.is_relative_to(root)):
            raise NotAllowed("What is in .git is git's own.")
        if found.is_dir():
            raise NotAllowed(f"{path} is a folder.")
        return found

    def shown(self, path: Path) -> str:
        """A path as the model reads it."""
        return str(path.relative_to(self.top)) if path.is_relative_to(self.top) else str(path)

    def _inside(self, path: str) -> Path:
        if "\0" in path:
            raise NotAllowed("A path has no NUL characters.")
        try:
            real = Path(os.path.realpath(Path(self.top, path)))
        except (OSError, ValueError) as error:
            raise NotAllowed(f"{path[:200]!r} is no path.") from error
        if not any(real.is_relative_to(root) for root in self.roots):
            raise NotAllowed(f"{path[:200]} is outside of {self.top}, where you work.")
        return real


class Files:
    """The tools, each with what the model is told about it."""

    def __init__(self, places: AllowedPaths) -> None:
        self.places = places

    def read_file(self, path: str, offset: int = 1, limit: int = MOST_LINES) -> str:
        """Read a text file, with line numbers. A long one: read on from a later line (offset)."""
        lines = _text(self.places.readable(path), path).splitlines()
        first = max(1, offset)
        chosen = lines[first - 1 : first - 1 + max(1, min(limit, MOST_LINES))]
        shown, size = [], 0
        for number, line in enumerate(chosen, first):
            shown.append(f"{number}\t{line[:LONGEST_LINE]}{'…' if len(line) > LONGEST_LINE else ''}")
            size += len(shown[-1])
            if size > MOST_LETTERS:
                break
        left = len(lines) - (first - 1 + len(shown))
        more = f"\n… {left} more lines; read on from line {first + len(shown)}." if left > 0 else ""
        return "\n".join(shown) + more if shown else f"({path} has {len(lines)} lines)"

    def write_file(self, path: str, content: str) -> str:
        """Write a file, new or over the old one; folders are made as needed."""
        place = self.places.writable(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        _write(place, content)
        return f"{self.places.shown(place)} has {len(content.splitlines())} lines now."

    def edit_file(self, path: str, old: str, new: str, everywhere: bool = False) -> str:
        """Replace a text in a file. The file must contain `old` exactly once, unless everywhere=true."""
        place = self.places.writable(path)
        if not place.exists():
            raise NotFound(f"There is no {path}.")
        text = _text(place, path)
        times = text.count(old) if old else 0
        if not times:
            raise BadInput(f"That text is not in {path}.", hint="Read the file again: each space counts.")
        if times > 1 and not everywhere:
            raise BadInput(f"That text is in {path} {times} times.", hint="Give more of it, or say everywhere=true.")
        _write(place, text.replace(old, new))
        return f"Exchanged {times} time{'s' if times > 1 else ''}."

    def list_files(self, path: str = ".", pattern: str = "") -> str:
        """List a folder; with a pattern such as *.py or src/**/test_*.py, the files below it that match."""
        folder = self.places.readable(path)
        if not folder.is_dir():
            raise NotAllowed(f"{path} is no folder.")
        found = list(self._matching(folder, pattern) if pattern else _entries(folder))
        more = [f"… and more than these {MOST_ENTRIES}."] if len(found) > MOST_ENTRIES else []
        return "\n".join([*found[:MOST_ENTRIES], *more]) or "(nothing)"

    def _matching(self, folder: Path, pattern: str) -> Iterator[str]:
        looked_at = found = 0
        for here, folders, files in os.walk(folder):
            folders[:] = sorted(each for each in folders if each != ".git")
            for name in sorted(files):
                path = Path(here, name).relative_to(folder)
                looked_at += 1
                if fnmatch.fnmatch(name, pattern) or path.match(pattern):
                    found += 1
                    yield self.places.shown(Path(here, name))
            if looked_at > MOST_LOOKED_AT or found > MOST_ENTRIES:
                return


def _entries(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        kind = "@" if path.is_symlink() else "/" if path.is_dir() else ""
        yield f"{path.name}{kind}"


def _text(place: Path, path: str) -> str:
    """The text of a file. Pipes and devices are refused."""
    try:
        content = read_file(None, place, LARGEST + 1)
    except NotPlain as error:
        raise NotAllowed(f"{path} is no file: {error}.") from error
    if len(content) > LARGEST:
        raise NotAllowed(f"{path} has more than {LARGEST} bytes, which is too much for this tool.")
    if b"\0" in content[:8000]:
        raise NotAllowed(f"{path} is no text.")
    return content.decode("utf-8", "replace")


def _write(place: Path, content: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(place, flags, 0o666), "wb") as file:
        file.write(content.encode("utf-8", "replace"))
