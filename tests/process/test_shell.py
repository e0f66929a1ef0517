"""One command to its end: its time, its output, and nothing left of it."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from process_stage import Stage, descriptors, play, until

import patience
from windlass.core.errors import BadInput
from windlass.core.runs.worktree_setup import ShellResult
from windlass.process.proc import process
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.shell import CommandShell, sweep

PATH = {"PATH": os.environ["PATH"]}


async def shell(stage: Stage, command: str, *, seconds: float = 20, limit: int = 10_000) -> ShellResult:
    """Run a command on the stage, in which $NAP is the stage's own number of seconds."""
    return await run(stage, command, str(stage.path), seconds, limit)


async def run(stage: Stage, command: str, folder: str, seconds: float = 20, limit: int = 10_000) -> ShellResult:
    return await CommandShell(Bubblewrap(), stage.spawner)(
        command,
        cwd=folder,
        environment={**PATH, "NAP": stage.token},
        timeout=seconds,
        output_limit=limit,
        marker=f"{stage.home}:check-1",
    )


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("nonsense-xyz", 127)])
def test_the_exit_code_is_the_commands(tmp_path: Path, command: str, code: int) -> None:
    """Its own code, or 128 and the signal that ended it."""

    async def story(stage: Stage) -> None:
        result = await shell(stage, command)
        assert (result.exit_code, result.timed_out, result.truncated) == (code, False, False)

    play(tmp_path, story)


def test_output_and_errors_are_one_text(tmp_path: Path) -> None:
    """Both arrive, in order; the command works in its folder and its input is empty."""

    async def story(stage: Stage) -> None:
        result = await shell(stage, "echo one; echo two >&2; pwd; cat; echo 'it''s $((1+1))'")
        assert result.output.decode() == f"one\ntwo\n{tmp_path}\nits $((1+1))\n"

    play(tmp_path, story)


def test_the_environment_is_exactly_the_given_one(tmp_path: Path) -> None:
    """Nothing of ours reaches a command (PWD is the shell's own word)."""

    async def story(stage: Stage) -> None:
        result = await shell(stage, "env")
        names = {line.split("=")[0] for line in result.output.decode().splitlines()}
        assert names - {"PWD", "SHLVL", "_"} == {"PATH", "NAP"}

    play(tmp_path, story)


def test_a_long_output_keeps_its_two_ends_in_little_memory(tmp_path: Path) -> None:
    """Of 200 MB the first third and the last two thirds of the limit stay, and a line that tells what does not."""

    async def story(stage: Stage) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await shell(stage, "echo start; head -c 200000000 /dev/zero; echo; echo end", limit=30_000)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert result.exit_code == 0
        assert result.truncated
        assert result.output.startswith(b"start\n\0")
        assert result.output.endswith(b"\0\nend\n")
        assert b"\n[... 199970011 bytes left out ...]\n" in result.output
        assert len(result.output) < 30_100
        assert grown < 30_000  # kilobytes

    play(tmp_path, story)


def test_at_the_limit_of_time_the_whole_tree_is_ended(tmp_path: Path) -> None:
    """Also what hides in a session of its own without an environment, and what ignores TERM; what was said is kept."""

    async def story(stage: Stage) -> None:
        command = 'echo begun; trap "" TERM; setsid env -i sleep "$NAP" & sleep "$NAP"'
        result = await shell(stage, command, seconds=0.3)
        assert (result.exit_code, result.timed_out, result.output) == (None, True, b"begun\n")
        assert 0.3 <= result.seconds < 10
        assert stage.napping() == []

    play(tmp_path, story)


def test_a_background_process_that_holds_the_output_does_not_hold_us_up(tmp_path: Path) -> None:
    """The result is there when the command has ended, and what it left behind is gone."""

    async def story(stage: Stage) -> None:
        async with asyncio.timeout(patience.seconds(10)):
            result = await shell(stage, 'sleep "$NAP" & echo done; exit 3', seconds=60)
        assert (result.exit_code, result.output, result.timed_out) == (3, b"done\n", False)
        assert stage.napping() == []

    play(tmp_path, story)


def test_one_who_waits_no_longer_ends_the_command(tmp_path: Path) -> None:
    """Cancelling, even twice, ends the whole tree before it is felt, and leaves no zombie and no descriptor."""

    async def story(stage: Stage) -> None:
        await shell(stage, "true")
        before = descriptors()
        task = asyncio.create_task(shell(stage, 'setsid env -i sleep "$NAP" & sleep "$NAP"'))
        await until(lambda: len(stage.napping()) == 2)
        top = next(each for each in stage.stamped() if each.pid == each.session).pid
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stage.napping() == []
        await until(lambda: process(top) is None)
        assert descriptors() == before

    play(tmp_path, story)


class CancelledTogether:
    """Some work that is cancelled in the very moment in which what it waits for is there, the first or a later time."""

    def __init__(self, work: Coroutine[Any, Any, object], number: int) -> None:
        self.work = work
        self.left = number

    def __await__(self) -> Generator[Any, Any, object]:
        steps = self.work.__await__()
        go_on: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                awaited = go_on()
            except StopIteration as over:
                return over.value
            self.left -= 1
            if self.left == 0:
                awaited.add_done_callback(partial(_cancel, asyncio.current_task()))
            try:
                yield awaited
                go_on = partial(next, steps)
            except asyncio.CancelledError as error:
                go_on = partial(steps.throw, error)


_LEAVES_ONE = 'sleep "$NAP" & exit 0'
_MOMENTS = [("true", 1), ("true", 2), (_LEAVES_ONE, 1), (_LEAVES_ONE, 2), (_LEAVES_ONE, 3)]


def _cancel(task: asyncio.Task[Any] | None, _: object) -> None:
    assert task is not None
    task.cancel()


@pytest.mark.parametrize(("command", "number"), _MOMENTS)
def test_who_is_told_to_leave_leaves_whatever_comes_in_that_moment(tmp_path: Path, command: str, number: int) -> None:
    """The end of the command, of its output, or of what it left behind: none of them hides the word to leave."""

    async def story(stage: Stage) -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.ensure_future(_awaited(CancelledTogether(shell(stage, command), number)))

    play(tmp_path, story)


async def _awaited(work: CancelledTogether) -> object:
    return await work


def test_a_command_that_ends_its_parent_changes_nothing(tmp_path: Path) -> None:
    """A check that kills its own group is a failed check, and no more."""

    async def story(stage: Stage) -> None:
        result = await shell(stage, "kill -9 0")
        assert result.exit_code == 137

    play(tmp_path, story)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A command can't run where there is nothing, and no descriptor is spent on it."""

    async def story(stage: Stage) -> None:
        before = descriptors()
        with pytest.raises(BadInput, match="gone"):
            await run(stage, "true", str(tmp_path / "gone"))
        with pytest.raises(BadInput):
            await run(stage, "true\0", str(tmp_path))
        assert descriptors() == before

    play(tmp_path, story)


def test_a_sweep_ends_what_a_dead_daemon_left_and_no_more(tmp_path: Path) -> None:
    """Only commands of this home are meant: no run, and nobody else's."""

    async def story(stage: Stage) -> None:
        check = stage.command("check-7", '(setsid env -i sleep "$NAP" &); sleep "$NAP"')
        run = await stage.start("r1", 'exec sleep "$NAP"')
        await until(lambda: len(stage.napping()) == 3)

        assert await sweep(stage.home[:-1]) == 0
        assert await sweep(stage.home) == 3

        assert not await stage.port.alive(check)
        assert await stage.port.alive(run)
        assert await stage.port.stop("r1", run, grace=5) == 2

    play(tmp_path, story)
