"""A run's folder: what its process says, and how it ended."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import BadInput, Unavailable
from windlass.process.proc import is_open
from windlass.system.files import NotPlain, open_file

_RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CODE = re.compile(rb"\d{1,3}\n")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """`runs/<run>/`: output, exit and whatever else the run was given."""

    path: Path

    @classmethod
    def of(cls, runs: Path, run: str) -> RunFolder:
        """The folder of a run, whose name must not lead elsewhere."""
        if not _RUN.fullmatch(run):
            raise BadInput(f"{run!r} is not the id of a run.")
        return cls(runs / run)

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def exit(self) -> Path:
        return self.path / "exit"

    def prepare(self) -> None:
        """Make it, for us alone. What an earlier try said is kept; how it ended is not true any more."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        self.exit.unlink(missing_ok=True)

    def read_output(self, offset: int, limit: int) -> bytes:
        """The output from an offset on; nothing if there is none."""
        return _read(self.output, offset, limit)

    def overwrite_output(self, offset: int, content: bytes) -> None:
        """Put other bytes in the place of what stands there; the output neither grows nor shrinks.

        A file with a second name is left as it is: it may be someone else's.
        """
        try:
            with open_file(None, self.output, os.O_WRONLY) as handle:
                if os.fstat(handle).st_nlink == 1:
                    os.pwrite(handle, content, offset)
        except OSError as error:
            raise Unavailable(f"{self.output} could not be written: {error.strerror}.") from error

    def is_output_shared(self) -> bool:
        """Whether the output has a second name elsewhere."""
        try:
            found = self.output.lstat()
            return stat.S_ISREG(found.st_mode) and found.st_nlink > 1  # a folder always has two
        except OSError:
            return False

    def drop_output(self, length: int) -> bool:
        """Remove the output if it is a plain file with just so many bytes and one name, and nobody has it open."""
        try:
            found = self.output.lstat()
            ours = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size == length
            if not ours or is_open(found):
                return False
            self.output.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Unavailable(f"{self.output} could not be removed: {error.strerror}.") from error
        return True

    def read_exit(self) -> int | None:
        """The exit code, if the shim could write it."""
        text = _read(self.exit, 0, 16)
        return int(text) if _CODE.fullmatch(text) and int(text) < 256 else None


def _read(path: Path, offset: int, limit: int) -> bytes:
    """Some bytes of a plain file. A link, pipe or folder in its place reads as nothing, and never blocks."""
    try:
        with open_file(None, path) as handle:
            return os.pread(handle, limit, offset)
    except (FileNotFoundError, NotPlain):
        return b""
    except OSError as error:
        raise Unavailable(f"{path} could not be read: {error.strerror}.") from error
