"""The programs that a run's PATH finds in folders which a sandbox hides, with what they need to work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import windlass

_PROGRAMS = ("bin", "sbin", "shims")
_BESIDE = "bin shims lib lib64 libexec versions installs plugins tools toolchains candidates pyenv.d".split()
"""What may lie beside a folder of programs and belong to them. Never all that does: tokens do, too."""
_DEEP = 3
"""So many levels below a hidden folder, one of them a dotted one, a tool has a folder of its own."""
_COMPANIONS = {".cargo": (".rustup",)}
"""Where some keep the rest of themselves."""
_MOST = 500
"""Entries of one folder that are looked at."""

Hidden = Callable[[Path], bool]


def ours() -> Iterator[Path]:
    """Windlass itself and its Python, so that `windlass` works inside."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path(windlass.__file__).parent)


def needed(path: str, program: str, hidden: Hidden) -> Iterator[Path]:
    """What must be shown of hidden folders: those of the PATH, and whatever their links lead to."""
    for folder in dict.fromkeys(Path(each) for each in path.split(":") if each.startswith("/")):
        if hidden(folder.resolve()):
            yield from _tool(folder, hidden)
            yield from _led_to(_links(folder), hidden)
    yield from _led_to([Path(program)], hidden)


def _led_to(programs: Iterable[Path], hidden: Hidden) -> Iterator[Path]:
    """What a program is really, and the tool that it belongs to."""
    for each in programs:
        real = each.resolve()
        if not real.is_file() or not hidden(real):
            continue
        yield real
        if "node_modules" in real.parts:
            yield Path(*real.parts[: real.parts.index("node_modules") + 1])
        elif real.parent.name in _PROGRAMS:
            yield from _tool(real.parent, hidden)


def _tool(folder: Path, hidden: Hidden) -> Iterator[Path]:
    """A folder of programs, and what around it belongs to them."""
    root = folder.parent
    yield folder
    if folder.name not in _PROGRAMS or not hidden(root.resolve().parent):
        return
    if (root / "pyvenv.cfg").is_file():
        yield root
        yield from _base_of(root / "pyvenv.cfg", hidden)
    elif _is_own(root.resolve(), hidden):
        yield root
    else:
        yield from (root / each for each in _BESIDE)
        yield from (root.with_name(each) for each in _COMPANIONS.get(root.name, ()))


def _is_own(root: Path, hidden: Hidden) -> bool:
    """Whether a folder is so deep among a tool's own files that it can only be one program's."""
    above = [each for each in root.parents if hidden(each)]
    return len(above) >= _DEEP and any(each.name.startswith(".") for each in above[:-1])


def _base_of(settings: Path, hidden: Hidden) -> Iterator[Path]:
    """The Python that a virtual environment was made from."""
    for line in settings.read_text("utf-8", "replace").splitlines():
        name, _, value = (each.strip() for each in line.partition("="))
        if name == "home" and value and hidden(Path(value).resolve()):
            yield from (Path(value).resolve().parent, Path(value).parent)


def _links(folder: Path) -> list[Path]:
    try:
        return [each for each in islice(folder.iterdir(), _MOST) if each.is_symlink()]
    except OSError:
        return []
