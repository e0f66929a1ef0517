"""Our own command on a run's PATH: agents are told to use it, also where Windlass runs from a clone."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path

from windlass.core.errors import Unavailable

FOLDER = "commands"
"""The folder of our home with that command in it. Not `bin`: beside one of those, a sandbox shows more of a tool."""
_NAME = "windlass"


def with_us(path: str, folder: Path) -> str:
    """A PATH that finds `windlass`: as it is if it does, or else with a folder at its end that has nothing but that."""
    program = Path(sys.executable).with_name(_NAME)
    if shutil.which(_NAME, path=path) or not os.access(program, os.X_OK):
        return path
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _link(folder / _NAME, program)
    except OSError as error:
        raise Unavailable(f"The folder {folder} could not be made: {error.strerror}.") from error
    return f"{path}:{folder}"


def _link(place: Path, program: Path) -> None:
    """Put in place in one step, as others may start at the same time."""
    if place.is_symlink() and place.readlink() == program:
        return
    draft = place.with_name(f".{_NAME}-{threading.get_ident()}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(program)
    draft.replace(place)
