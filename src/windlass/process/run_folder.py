"""A run's folder: what its process says, and how it ended."""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import BadInput, Unavailable

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
        return read_regular(self.output, offset, limit)

    def overwrite_output(self, offset: int, content: bytes) -> None:
        """Put other bytes in the place of what stands there; the output neither grows nor shrinks."""
        try:
            descriptor = os.open(self.output, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.pwrite(descriptor, content, offset)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise Unavailable(f"{self.output} could not be written: {error.strerror}.") from error

    def read_exit(self) -> int | None:
        """The exit code, if the shim could write it."""
        text = read_regular(self.exit, 0, 16)
        return int(text) if _CODE.fullmatch(text) and int(text) < 256 else None


def read_regular(path: Path, offset: int, limit: int) -> bytes:
    """Some bytes of a regular file. A link, pipe or folder in its place reads as nothing, and never blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            return b""
        raise Unavailable(f"{path} could not be read: {error.strerror}.") from error
    try:
        return os.pread(descriptor, limit, offset) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError as error:
        raise Unavailable(f"{path} could not be read: {error.strerror}.") from error
    finally:
        os.close(descriptor)
