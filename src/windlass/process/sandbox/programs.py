"""The programs that a run's PATH finds in folders which a sandbox hides, with what they need to work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from posixpath import basename, dirname, isfile, realpath

import windlass

_PROGRAMS = ("bin", "sbin", "shims")
_BESIDE = "bin shims lib lib64 libexec version versions installs plugins tools toolchains candidates pyenv.d".split()
"""What may belong to a folder of programs beside it; not everything there, because some of it holds tokens.

`version` is the file in which version managers keep which one a person has chosen."""
_DEEP = 3
"""So many levels below a hidden folder, one of them a dotted one, a tool has a folder of its own."""
_COMPANIONS = {".cargo": (".rustup",)}
"""Folders in which some tools keep the rest of themselves."""
_MOST = 500
"""Entries of one folder that are looked at."""

Hidden = Callable[[str], bool]


def ours() -> tuple[str, ...]:
    """Windlass itself and its Python, so that `windlass` works inside."""
    return sys.prefix, sys.base_prefix, dirname(windlass.__file__)


def needed(path: str, program: str, hidden: Hidden) -> Iterator[str]:
    """Hidden paths that a run needs: the folders of its PATH, and the targets of their links."""
    for folder in dict.fromkeys(part.rstrip("/") for part in path.split(":") if part.startswith("/")):
        if hidden(realpath(folder)):
            yield from _tool(folder, hidden)
            yield from _led_to(_links(folder), hidden)
    yield from _led_to([program], hidden)


def _led_to(programs: Iterable[str], hidden: Hidden) -> Iterator[str]:
    """The real file of a program, and the folders of its tool."""
    for real in dict.fromkeys(map(realpath, programs)):
        if not hidden(real) or not isfile(real):
            continue
        yield real
        before, modules, _ = real.partition("/node_modules/")
        if modules:
            yield f"{before}/node_modules"
        elif basename(dirname(real)) in _PROGRAMS:
            yield from _tool(dirname(real), hidden)


def _tool(folder: str, hidden: Hidden) -> Iterator[str]:
    """A folder of programs, and what around it belongs to them."""
    root = dirname(folder)
    yield folder
    if basename(folder) not in _PROGRAMS or not hidden(dirname(realpath(root))):
        return
    if isfile(f"{root}/pyvenv.cfg"):
        yield root
        yield from _base_of(Path(root, "pyvenv.cfg"), hidden)
    elif _is_own(realpath(root), hidden):
        yield root
    else:
        yield from (f"{root}/{name}" for name in _BESIDE)
        yield from (f"{dirname(root)}/{name}" for name in _COMPANIONS.get(basename(root), ()))


def _is_own(root: str, hidden: Hidden) -> bool:
    """Whether a folder is so deep among a tool's own files that it can only be one program's."""
    above = [parent for parent in Path(root).parents if hidden(str(parent))]
    return len(above) >= _DEEP and any(parent.name.startswith(".") for parent in above[:-1])


def _base_of(settings: Path, hidden: Hidden) -> Iterator[str]:
    """The Python that a virtual environment was made from."""
    for line in settings.read_text("utf-8", "replace").splitlines():
        name, _, value = (part.strip() for part in line.partition("="))
        if name == "home" and value and hidden(realpath(value)):
            yield from (dirname(realpath(value)), dirname(value))


def _links(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in islice(entries, _MOST) if entry.is_symlink()]
    except OSError:
        return []
