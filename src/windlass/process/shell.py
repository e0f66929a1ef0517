"""Running one shell command to its end, with limits on its time and output, and nothing left behind."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Self, TypeVar

from windlass.core.errors import Unavailable
from windlass.core.nouns.run import Identity
from windlass.core.runs.worktree_setup import ShellResult
from windlass.process.end_tree import ProcessTree
from windlass.process.proc import MARKER
from windlass.process.process_table import Survey
from windlass.process.spawn import SHELL, Action, check_folder, spawn
from windlass.process.watching.exits import all_gone
from windlass.system.capture import Capture

# $1 where to work, $2 the command; OLDPWD would tell where we work. The command's parent is this shell: one that kills
# its parent must not hit us. What the shell itself would say about a killed command stays out of the output.
_ENTER = 'cd "$1" && unset OLDPWD || exit; exec 3>&2 2>/dev/null; /bin/sh -c "$2" 2>&3 3>&-; exit "$?"'

T = TypeVar("T")

_GRACE = 1.0
_DRAIN = 0.2
_READ = 1 << 18


async def run_shell(
    command: str,
    cwd: str,
    environment: Mapping[str, str],
    *,
    timeout: float,  # noqa: ASYNC109  a tree of processes must be ended, not only no longer awaited
    output_limit: int,
    marker: str,
) -> ShellResult:
    """Run `sh -c command` in exactly this environment and its marker. All it started is gone when this returns."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    capture = Capture(output_limit)
    reader, child = _begin(command, cwd, {**environment, MARKER: marker})
    with _Pipe(reader, capture) as pipe:
        try:
            ended = await all_gone([child], timeout)
            seconds = loop.time() - began
            if ended:
                await pipe.drained()
        finally:
            code = await _uninterrupted(_finish(child, marker))
        if not ended:
            await pipe.drained()  # the last words of what was ended
    return ShellResult(
        exit_code=code if ended else None,
        output=capture.kept(),
        truncated=capture.left_out > 0,
        seconds=seconds,
        timed_out=not ended,
    )


async def sweep(home_id: str, prefix: str) -> int:
    """End what is left of commands whose marker begins with `<home>:<prefix>`. Returns how many processes it was."""
    start = f"{home_id}:{prefix}"
    return await ProcessTree(Survey(), lambda marker: marker.startswith(start)).end(grace=_GRACE)


class _Pipe:
    """The reading end of a command's output."""

    def __init__(self, descriptor: int, capture: Capture) -> None:
        self._descriptor = descriptor
        self._capture = capture
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._loop.add_reader(descriptor, self._ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    async def drained(self) -> None:
        """Wait for the end of the output, but not for a background process that holds it open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN):  # `wait_for` may overhear that it was told to leave
                await self._ended.wait()

    def _ready(self) -> None:
        try:
            some = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return
        if some:
            self._capture.add(some)
        else:
            self._loop.remove_reader(self._descriptor)
            self._ended.set()


def _begin(command: str, cwd: str, environment: Mapping[str, str]) -> tuple[int, Identity]:
    check_folder(cwd)
    try:
        reader, writer = os.pipe2(os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"The command's output could not be set up: {error.strerror}.") from error
    os.set_blocking(reader, False)
    writer = _above_the_standard_ones(writer)
    actions: list[Action] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writer, 1),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        return reader, spawn([SHELL, "-c", _ENTER, "windlass-check", cwd, command], environment, actions)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)


def _above_the_standard_ones(descriptor: int) -> int:
    """The same, numbered so that setting up 0, 1 and 2 can't overwrite it."""
    if descriptor > 2:
        return descriptor
    higher: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return higher


async def _finish(child: Identity, marker: str) -> int:
    """End whatever is left of the command, reap it, and return its exit code."""
    await ProcessTree(Survey(), marker.__eq__, root=child).end(grace=_GRACE)
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])  # noqa: ASYNC222 - it has ended, so this does not block
    return code if code >= 0 else 128 - code


async def _uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Finish the work even if we are cancelled meanwhile; the cancellation is raised after it."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    return task.result()
