"""The setup of a workflow: run its commands one after the other in this terminal; show and keep their output."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.cli.output import block, dim, one_line, tell
from windlass.core.errors import BadInput, TimedOut, WindlassError
from windlass.system.capture import Capture

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from windlass.core.workflows.workflow import SetupStep

LARGEST = 4_000_000
"""Bytes of an output that are kept: the most that a document may have."""
LONGEST_VARIABLE = 100_000
"""Bytes of a value that a later command may get: a process takes little more in one variable."""
_CHUNK = 65536
_POLL_SECONDS = 0.1
"""How often to look whether the command has ended: its children may hold its pipes open."""
_LAST_LINES = 20

Show = Callable[[str], None]


@dataclass(slots=True)
class LivePrinter:
    """Shows output line by line as it arrives, and remembers the last lines."""

    show: Show | None
    last: deque[str]
    unfinished: bytes = b""

    def add(self, content: bytes) -> None:
        *whole, self.unfinished = (self.unfinished + content).split(b"\n")
        self.unfinished = self.unfinished[-_CHUNK:]  # a line without an end must not fill the memory
        for line in whole:
            self._print(line)

    def end(self) -> None:
        if self.unfinished:
            self._print(self.unfinished)

    def _print(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        self.last.append(text)
        if self.show:
            self.show(text)


def set_up(step: SetupStep, values: Mapping[str, str], *, quiet: bool, verbose: bool, deadline: float | None) -> str:
    """Run one command in this folder, with this terminal's environment, and return its output.

    Output that a later step uses is shown only if `verbose`. Raises WindlassError if the command fails, and TimedOut.
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
    kept, err = Capture(LARGEST), LivePrinter(show, last)
    out = LivePrinter(show if verbose or not step.name else None, last)
    process = subprocess.Popen(
        ["/bin/sh", "-c", script],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time_over = time.monotonic() + allowed
    try:
        for pipe, content in _output(process, time_over):
            (out if pipe == "out" else err).add(content)
            if pipe == "out":
                kept.add(content)
        process.wait(max(0.0, time_over - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        raise TimedOut(
            f"Setup took longer than {allowed:g} s: {one_line(script)}", hint=f"Give it a longer {remedy}."
        ) from error
    finally:
        if process.poll() is None:  # it is given up, and leaves nothing behind
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    out.end()
    err.end()
    if process.returncode:
        failure = f"Setup failed with exit code {process.returncode}: {one_line(script)}"
        raise WindlassError(f"{failure}\n{block(chr(10).join(last))}".rstrip(), hint="No agent was started.")
    if step.name and kept.left_out:
        size = LARGEST + kept.left_out
        tell(f"{step.name} has {size:,} bytes: {kept.left_out:,} in the middle are left out.")
    return kept.kept().decode("utf-8", "replace").rstrip("\n")


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


def _output(process: subprocess.Popen[bytes], deadline: float) -> Iterator[tuple[str, bytes]]:
    """Yield the command's output as it arrives, with the name of its pipe, until the command ends.

    Processes that it leaves behind may keep the pipes open. Raises TimeoutError.
    """
    assert process.stdout and process.stderr
    with selectors.DefaultSelector() as ready, process.stdout, process.stderr:
        ready.register(process.stdout, selectors.EVENT_READ, data="out")
        ready.register(process.stderr, selectors.EVENT_READ, data="error")
        while ready.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            gone = process.poll() is not None
            found = ready.select(0 if gone else min(left, _POLL_SECONDS))
            for key, _ in found:
                content = os.read(key.fd, _CHUNK)
                if content:
                    yield key.data, content
                else:
                    ready.unregister(key.fileobj)
            if gone and not found:
                return
