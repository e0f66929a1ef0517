"""The setup of a workflow: its commands, one after the other, in this terminal; what they print is shown and kept."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.cli.output import block, dim, one_line, tell
from windlass.core.errors import BadInput, TimedOut, WindlassError

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from windlass.core.workflows.workflow import SetupStep

LARGEST = 4_000_000
"""Bytes of an output that are kept: as many as a document may have."""
LONGEST_VARIABLE = 100_000
"""Bytes of a value that a later command may be given: a process takes little more in one variable."""
_CHUNK = 65536
_GLANCE = 0.1
"""Seconds after which it is looked whether the command has ended, though its pipes are still open."""
_LAST_LINES = 20

Show = Callable[[str], None]


@dataclass(slots=True)
class CappedOutput:
    """What came through a pipe, in bounded memory: the beginning, the end, and how much there was."""

    most: int = LARGEST
    size: int = 0
    first: bytearray = field(default_factory=bytearray)
    last: bytearray = field(default_factory=bytearray)

    def add(self, content: bytes) -> None:
        self.size += len(content)
        room = self.most // 2 - len(self.first)
        self.first += content[: max(0, room)]
        self.last += content[max(0, room) :]
        if len(self.last) > self.most:
            del self.last[: -self.most // 2]

    @property
    def cut(self) -> int:
        """How many bytes in the middle are not kept."""
        return max(0, self.size - self.most)

    def text(self) -> str:
        """All of it; or its two ends, and between them how much is left out."""
        first, last = bytes(self.first), bytes(self.last[-(self.most - len(self.first)) :] if self.cut else self.last)
        middle = f"\n… {self.cut:,} bytes are left out here …\n".encode() if self.cut else b""
        return (first + middle + last).decode("utf-8", "replace").rstrip("\n")


@dataclass(slots=True)
class LivePrinter:
    """Shows what is printed line by line while it comes, and remembers the last lines."""

    show: Show | None
    last: deque[str]
    unfinished: bytes = b""

    def add(self, content: bytes) -> None:
        *whole, self.unfinished = (self.unfinished + content).split(b"\n")
        self.unfinished = self.unfinished[-_CHUNK:]  # a line without an end is not kept for ever
        for each in whole:
            self._tell(each)

    def end(self) -> None:
        if self.unfinished:
            self._tell(self.unfinished)

    def _tell(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        self.last.append(text)
        if self.show:
            self.show(text)


def set_up(step: SetupStep, values: Mapping[str, str], *, quiet: bool, verbose: bool, deadline: float | None) -> str:
    """One command, in this folder and with this terminal's environment; what it printed.

    Output that is captured is shown if `verbose`. Raises WindlassError if it fails, TimedOut if it takes too long.
    """
    script, variables = step.shell.script()
    left = step.seconds if deadline is None else deadline - time.monotonic()
    allowed, remedy = min(step.seconds, left), "`timeout`" if step.seconds <= left else "--timeout"
    if allowed <= 0:
        raise TimedOut(f"No time is left for setup: {one_line(script)}", hint="Give it a longer --timeout.")
    environment = os.environ | {variable: _given(values, name, script) for variable, name in variables.items()}
    show: Show | None = None if quiet else lambda line: tell(dim(block(line)))
    if show:
        tell(dim(f"$ {one_line(script)}"))
    last = deque[str](maxlen=_LAST_LINES)
    kept, out, err = (
        CappedOutput(),
        LivePrinter(show if verbose or not step.name else None, last),
        LivePrinter(show, last),
    )
    began = subprocess.Popen(
        ["/bin/sh", "-c", script],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time_over = time.monotonic() + allowed
    try:
        for pipe, content in _output(began, time_over):
            (out if pipe == "out" else err).add(content)
            if pipe == "out":
                kept.add(content)
        began.wait(max(0.0, time_over - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        raise TimedOut(
            f"Setup took longer than {allowed:g} s: {one_line(script)}", hint=f"Give it a longer {remedy}."
        ) from error
    finally:
        _end(began)
    out.end()
    err.end()
    if began.returncode:
        raise WindlassError(
            f"Setup failed with exit code {began.returncode}: {one_line(script)}\n{block(chr(10).join(last))}".rstrip(),
            hint="No agent was started.",
        )
    if step.name and kept.cut:
        tell(f"{step.name} has {kept.size:,} bytes: {kept.cut:,} in the middle are left out.")
    return kept.text()


def _given(values: Mapping[str, str], name: str, script: str) -> str:
    value = values[name]
    if len(value.encode("utf-8", "surrogateescape")) > LONGEST_VARIABLE:
        raise BadInput(
            f"{name} is too long for a command of setup: {one_line(script)}",
            hint="Let the first command write it to a file, and the second read that.",
        )
    if "\0" in value:
        raise BadInput(f"{name} has a NUL byte in it, which no command can be given: {one_line(script)}")
    return value


def _output(began: subprocess.Popen[bytes], deadline: float) -> Iterator[tuple[str, bytes]]:
    """What it prints, as it comes: from which pipe, and the bytes. Raises TimeoutError.

    It ends with the command: what that has left running may keep the pipes open.
    """
    assert began.stdout and began.stderr
    with selectors.DefaultSelector() as ready, began.stdout, began.stderr:
        ready.register(began.stdout, selectors.EVENT_READ, data="out")
        ready.register(began.stderr, selectors.EVENT_READ, data="error")
        while ready.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            gone = began.poll() is not None
            found = ready.select(0 if gone else min(left, _GLANCE))
            for key, _ in found:
                content = os.read(key.fd, _CHUNK)
                if content:
                    yield key.data, content
                else:
                    ready.unregister(key.fileobj)
            if gone and not found:
                return


def _end(began: subprocess.Popen[bytes]) -> None:
    """A setup that is given up leaves nothing behind."""
    if began.poll() is None:
        os.killpg(began.pid, signal.SIGKILL)
        began.wait()
