"""Running one shell command to its end, with limits on its time and output, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

from windlass.core.errors import Unavailable
from windlass.core.nouns.run import Identity
from windlass.core.runs.sandbox import Sandbox
from windlass.core.runs.worktree_setup import ShellResult
from windlass.process.end_tree import ProcessTree
from windlass.process.process_table import Survey
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.stamp import command_stamp, is_command, is_of
from windlass.process.starting.shim import SHELL, check_folder
from windlass.process.starting.spawner import Spawner
from windlass.process.watching.exits import all_gone
from windlass.system.capture import Capture

# $1 where to work, then the program; OLDPWD would tell where we work. The program's parent is this shell: one that
# kills its parent must not hit us. What the shell itself would say about a killed program stays out of the output. The
# exit code goes to descriptor 3, which the program does not get.
_ENTER = """\
exec 4>&2 2>/dev/null
( cd "$1" 2>&4 || exit; unset OLDPWD; shift; exec "$@" 2>&4 3>&- 4>&- )
echo "$?" >&3
"""
_KILLED = 137
"""The exit code of a command that killed its shell."""

T = TypeVar("T")

_GRACE = 1.0
_DRAIN = 0.2
_READ = 1 << 18


class CommandShell:
    """Runs shell commands, in a sandbox where one is given."""

    def __init__(self, bubblewrap: Bubblewrap, spawner: Spawner) -> None:
        self._bubblewrap = bubblewrap
        self._spawner = spawner

    async def __call__(
        self,
        command: str,
        *,
        cwd: str,
        environment: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109  a tree of processes must be ended, not only no longer awaited
        output_limit: int,
        marker: str,
        sandbox: Sandbox | None = None,
    ) -> ShellResult:
        """Run `sh -c command` in exactly this environment. All it started is gone when this returns.

        The marker is `<home>:<name>`: its processes bear the stamp of that.
        """
        words = [SHELL, "-c", command]
        given = dict(environment)
        if sandbox is not None:
            words, given = await asyncio.to_thread(self._bubblewrap.wrapped, words, cwd, given, sandbox)
        stamp = command_stamp(*marker.split(":", 1))
        return await _run(partial(_begin, self._spawner, words, cwd, given, stamp), stamp, timeout, output_limit)


async def _run(begin: Callable[[], _Begun], stamp: int, limit: float, kept: int) -> ShellResult:
    loop = asyncio.get_running_loop()
    began = loop.time()
    capture = Capture(kept)
    begun = await _begun(begin, stamp)
    with begun, _Pipe(begun.output, capture) as pipe:
        try:
            ended = await all_gone([begun.child], limit)
            seconds = loop.time() - began
            if ended:
                await pipe.drained()
        finally:
            await _uninterrupted(_end_all(begun, stamp))
        if not ended:
            await pipe.drained()  # the last words of what was ended
    return ShellResult(
        exit_code=begun.exit_code if ended else None,
        output=capture.kept(),
        truncated=capture.left_out > 0,
        seconds=seconds,
        timed_out=not ended,
    )


async def sweep(home_id: str) -> int:
    """End what is left of the commands of a home, whose daemon has gone. Returns how many processes it was."""
    return await ProcessTree(Survey(), lambda stamp: is_of(home_id, stamp) and is_command(stamp)).end(grace=_GRACE)


@dataclass(slots=True)
class _Begun:
    """A command that was started: its first process, and the ends from which its output and exit code are read."""

    child: Identity
    output: int
    code: int
    exit_code: int = _KILLED

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BlockingIOError):  # something else holds the other end, and this was never told
            self.exit_code = int(os.read(self.code, 4) or _KILLED)
        os.close(self.code)
        os.close(self.output)


class _Pipe:
    """Reads a command's output as it comes."""

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


async def _begun(begin: Callable[[], _Begun], stamp: int) -> _Begun:
    """Start the command in a thread. If we are cancelled meanwhile, it is ended at once."""
    starting = asyncio.ensure_future(asyncio.to_thread(begin))
    try:
        return await _uninterrupted(starting)
    except asyncio.CancelledError:
        if not starting.exception():
            with starting.result() as begun:
                await _uninterrupted(_end_all(begun, stamp))
        raise


def _begin(spawner: Spawner, words: Sequence[str], cwd: str, environment: Mapping[str, str], stamp: int) -> _Begun:
    check_folder(cwd)
    argv = [SHELL, "-c", _ENTER, "windlass-check", cwd, *words]
    with ExitStack() as ends, ExitStack() as ours:
        try:
            nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            ends.callback(os.close, nothing)
            (output, said), (code, told) = _pipe(ours, ends), _pipe(ours, ends)
        except OSError as error:
            raise Unavailable(f"The command's output could not be set up: {error.strerror}.") from error
        child = spawner.spawn(argv, environment, (nothing, said, said, told), stamp)
        ours.pop_all()
        return _Begun(child, output, code)


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    """The two ends of a pipe; reading from it never blocks."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    ours.callback(os.close, reader)
    theirs.callback(os.close, writer)
    os.set_blocking(reader, False)
    return reader, writer


async def _end_all(begun: _Begun, stamp: int) -> None:
    """End whatever is left of the command."""
    await ProcessTree(Survey(), stamp.__eq__, root=begun.child).end(grace=_GRACE)


async def _uninterrupted(work: Awaitable[T]) -> T:
    """Finish the work even if we are cancelled meanwhile; the cancellation is raised after it."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001 - raised below, or left for whoever was cancelled
            break
    if cancelled:
        raise cancelled
    return task.result()
