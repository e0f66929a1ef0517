"""Run programs for a model: in the worktree, with a time limit and a limit of output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from windlass.core.errors import BadInput
from windlass.model.files import AllowedPaths
from windlass.system.capture import Capture

USUAL_SECONDS, MOST_SECONDS = 120.0, 1800.0
MOST_BYTES = 30_000
"""Bytes that are kept of an output: its beginning and its end."""
AFTERWARDS = 0.5
"""Seconds in which processes that a command leaves behind may still write."""
GRACE = 2.0
SEARCH_SECONDS = 30.0
MOST_MATCHES = 200
TOLD = ("agent", "change", "context")
"""The commands of `windlass` that a model may use: they only report about its run."""


class Commands:
    """The tools that start programs, with the environment that these get."""

    def __init__(self, places: AllowedPaths, environment: Mapping[str, str]) -> None:
        self.places = places
        self.environment = dict(environment)

    async def shell(self, command: str, seconds: float = USUAL_SECONDS) -> str:
        """Run a shell command in your worktree and read its output. It has no input, and is ended after some seconds
        (120, if you do not say more; at most 1800)."""
        if not command.strip() or "\0" in command:
            raise BadInput("There is no command.")
        limit = min(max(1.0, seconds), MOST_SECONDS)
        return await self._run(("sh", "-c", command), self.places.top, limit)

    async def windlass(self, words: Sequence[str]) -> str:
        """Run `windlass agent …`, `windlass change …` or `windlass context …`, word by word without `windlass`."""
        if not words or words[0] not in TOLD or any("\0" in word for word in words):
            raise BadInput(f"The first word must be one of {', '.join(TOLD)}.")
        return await self._run(("windlass", *words), self.places.top, USUAL_SECONDS)

    async def search_files(self, pattern: str, path: str = ".", files: str = "", ignore_case: bool = False) -> str:
        """Search the files for lines with a pattern (an extended regular expression), in a folder or file, and where
        `files` is given only in files of such names (*.py). What git ignores is left out."""
        if not pattern or "\0" in pattern + files:
            raise BadInput("There is nothing to search for.")
        place = self.places.readable(path)
        folder, name = (place, ".") if place.is_dir() else (place.parent, place.name)
        case = ("--ignore-case",) if ignore_case else ()
        inside = await self._run(("git", "rev-parse", "--is-inside-work-tree"), folder, SEARCH_SECONDS)
        where = "--untracked" if inside.strip() == "true" else "--no-index"
        only = f":(glob)**/{files}" if files else f":(literal){name}"
        words = ("git", "grep", where, "-n", "-I", "-E", f"--max-count={MOST_MATCHES}", *case, "-e", pattern)
        found = await self._run((*words, "--", only), folder, SEARCH_SECONDS)
        lines = found.splitlines()
        if lines[-1:] == ["(exit code 1)"]:
            return "(nothing)"
        more = [f"… {len(lines) - MOST_MATCHES} more lines"] if len(lines) > MOST_MATCHES else []
        return "\n".join([*(line[:500] for line in lines[:MOST_MATCHES]), *more])

    async def _run(self, words: Sequence[str], folder: Path, seconds: float) -> str:
        """The output of a program, and its exit code if not 0. It is ended if it takes too long, or with us."""
        output = Capture(MOST_BYTES)
        async with _pipe(output) as (inlet, reading):
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=inlet,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env=self.environment,
                start_new_session=True,
            )
            os.close(inlet)
            try:
                async with asyncio.timeout(seconds):
                    code = await process.wait()
                await asyncio.wait((reading,), timeout=AFTERWARDS)
            except TimeoutError:
                await _end(process)
                return _text(output, f"(ended after {seconds:.0f} seconds: it took too long)")
            except BaseException:
                await asyncio.shield(_end(process))
                raise
        return _text(output, f"(exit code {code})" if code else "") or "(no output)"


@asynccontextmanager
async def _pipe(output: Capture) -> AsyncIterator[tuple[int, asyncio.Task[None]]]:
    """A pipe that is read as it fills. Processes that a command leaves behind may keep it open; we do not wait."""
    outlet, inlet = os.pipe()
    stream = asyncio.StreamReader()
    file = os.fdopen(outlet, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), file
    )
    reading = asyncio.create_task(_drain(stream, output))
    try:
        yield inlet, reading
    finally:
        reading.cancel()
        transport.close()


def _text(output: Capture, note: str) -> str:
    """The output as far as it was kept, and a last line of ours."""
    return "\n".join(filter(None, (output.kept().decode("utf-8", "replace").removesuffix("\n"), note)))


async def _drain(stream: asyncio.StreamReader, output: Capture) -> None:
    while content := await stream.read(65536):
        output.add(content)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask a program and its process group to end, then kill them."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await process.wait()
