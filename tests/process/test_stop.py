"""Ending whole trees, and never a stranger."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from process_stage import Stage, play, until, when_gone

import patience
from windlass.core.nouns.run import Identity
from windlass.process.end_tree import ProcessTree
from windlass.process.proc import Process, boot_id, identify, process
from windlass.process.process_table import ProcessTable
from windlass.process.watching.exits import all_gone


def test_what_left_its_session_and_dropped_its_environment_ends_too(tmp_path: Path) -> None:
    """A grandchild in a session of its own without an environment is still a descendant."""

    async def story(stage: Stage) -> None:
        identity = await stage.start("r1", 'setsid env -i sleep "$NAP" & wait')
        await until(lambda: len(stage.napping()) == 1)
        hidden = stage.napping()[0]
        await until(lambda: [each.session for each in stage.napping()] == [hidden.pid])

        assert await stage.port.stop("r1", identity, grace=5) == 3
        assert stage.napping() == []

    play(tmp_path, story)


def test_what_was_given_to_another_parent_ends_too(tmp_path: Path) -> None:
    """A process whose parent has gone is the shim's child then."""

    async def story(stage: Stage) -> None:
        script = '(setsid sleep "$NAP" &); (env -i sleep "$NAP" &); echo up; exec sleep "$NAP"'
        identity = await stage.start("r1", script)
        await until(lambda: len(stage.napping()) == 3)

        assert await stage.port.stop("r1", identity, grace=5) == 4
        assert stage.napping() == []
        assert await stage.port.exit_code("r1") == 143

    play(tmp_path, story)


@pytest.mark.parametrize("program", ['exec sleep "$NAP"', "exit 0"], ids=["stopped", "over"])
def test_what_left_parents_session_and_environment_ends_too(tmp_path: Path, program: str) -> None:
    """Nothing of ours is left on it that it could drop; it ends with its run, whether that is stopped or over."""

    async def story(stage: Stage) -> None:
        hide = "(setsid env -i sh -c 'sleep '$NAP' & sleep '$NAP' & wait' &)"
        identity = await stage.start("r1", f"{hide}; until [ -e go ]; do sleep 0.02; done; {program}")
        await until(lambda: len(stage.napping()) == 2)
        (tmp_path / "go").touch()
        if program == "exit 0":
            assert await stage.ended("r1", identity) == 0

        await stage.port.stop("r1", identity, grace=5)
        assert stage.napping() == []

    play(tmp_path, story)


def test_a_program_is_asked_by_the_signal_that_it_obeys(tmp_path: Path) -> None:
    """Some go on after TERM and end their work properly after INT."""

    async def story(stage: Stage) -> None:
        script = 'trap "" TERM; trap "echo tidy; exit 7" INT; echo up; while :; do sleep 0.05; done'
        identity = await stage.start("r1", script)
        await until(lambda: stage.said("r1") == "up\n")

        await stage.port.stop("r1", identity, grace=30, gently="INT")
        assert (await stage.port.output("r1", 0, 100), await stage.port.exit_code("r1")) == (b"up\ntidy\n", 7)

    play(tmp_path, story)


def test_one_is_stopped_before_its_program_has_begun(tmp_path: Path) -> None:
    """A stop right after the start does not miss the program that is about to appear, nor wait out its grace."""

    async def story(stage: Stage) -> None:
        async with asyncio.timeout(patience.seconds(10)):
            for number in range(10):
                identity = await stage.start(f"r{number}", 'exec sleep "$NAP"')
                await stage.port.stop(f"r{number}", identity, grace=60)
                assert await stage.port.exit_code(f"r{number}") == 143

    play(tmp_path, story)


def test_who_ignores_the_request_is_killed_after_the_grace(tmp_path: Path) -> None:
    """The shim is left to tell the end: 137, killed."""

    async def story(stage: Stage) -> None:
        identity = await stage.start("r1", "trap '' TERM; echo up; while :; do sleep 0.1; done")
        await until(lambda: stage.said("r1"))

        assert await stage.port.stop("r1", identity, grace=0.2) >= 2
        assert not await stage.port.alive(identity)
        assert await stage.port.exit_code("r1") == 137

    play(tmp_path, story)


def test_who_complies_is_not_waited_for_any_longer(tmp_path: Path) -> None:
    """Grace is a limit, not a pause; what is said in it is kept."""

    async def story(stage: Stage) -> None:
        identity = await stage.start(
            "r1", "exec 2>/dev/null; trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.02; done"
        )
        await until(lambda: stage.said("r1"))
        async with asyncio.timeout(patience.seconds(10)):
            await stage.port.stop("r1", identity, grace=60)
        assert stage.said("r1") == "up\nbye\n"
        assert await stage.port.exit_code("r1") == 9

    play(tmp_path, story)


def test_children_that_outlived_their_shim_end_with_or_without_its_identity(tmp_path: Path) -> None:
    """What a finished program left behind is found by its stamp."""

    async def story(stage: Stage) -> None:
        for known in (True, False):
            run = f"r{known}"
            identity = await stage.start(run, '(sleep "$NAP" &); env -i sleep "$NAP" & exit 0')
            assert await stage.ended(run, identity) == 0
            await until(lambda: len(stage.napping()) == 2)
            assert await stage.port.stop(run, identity if known else None, grace=5) == 2
            assert stage.napping() == []

    play(tmp_path, story)


def test_scrubbed_children_alone_are_known_by_the_session_of_their_shim(tmp_path: Path) -> None:
    """With the shim and the environment both gone, the session and the stamp are left."""

    async def story(stage: Stage) -> None:
        identity = await stage.start("r1", 'env -i sleep "$NAP" & exit 0')
        assert await stage.ended("r1", identity) == 0
        await until(lambda: len(stage.napping()) == 1)
        assert await stage.port.stop("r1", identity, grace=5) == 1
        assert stage.napping() == []

    play(tmp_path, story)


def test_one_that_keeps_forking_is_ended_with_all_its_children(tmp_path: Path) -> None:
    """No child is lost that was born while its parent was about to be killed, though it hides at once."""

    async def story(stage: Stage) -> None:
        script = "trap '' TERM; i=0; while :; do setsid env -i sleep \"$NAP\" & sleep 0.005; done"
        identity = await stage.start("r1", script)
        await until(lambda: len(stage.napping()) > 5)
        await stage.port.stop("r1", identity, grace=0.1)
        assert stage.napping() == []

    play(tmp_path, story)


def a_stranger() -> subprocess.Popen[bytes]:
    """A process that has nothing to do with us, with a session of its own and a child in it."""
    return subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True)


def test_a_reused_pid_is_never_signalled(tmp_path: Path) -> None:
    """A stranger with the pid of a dead shim, or from before a reboot, lives on, and so does its session."""

    async def story(stage: Stage) -> None:
        stranger = a_stranger()
        named = identify(stranger.pid)
        assert named is not None
        try:
            for wrong in (
                Identity(stranger.pid, named.started - 1, named.boot),
                Identity(stranger.pid, named.started + 1, named.boot),
                Identity(stranger.pid, named.started, "another boot"),
            ):
                assert await stage.port.stop("r1", wrong, grace=0.1) == 0
                assert await stage.port.alive(named)
        finally:
            os.killpg(stranger.pid, 9)
            stranger.wait()

    play(tmp_path, story)


def test_a_strangers_session_with_a_dead_leaders_number_is_left_alone(tmp_path: Path) -> None:
    """Its own leader has gone too; what tells it from the run's is that nothing in it bears our stamp."""

    async def story(stage: Stage) -> None:
        stranger = stage.stranger("sleep")
        dead = Identity(stranger.session, stranger.started - 1, boot_id())
        assert await stage.port.stop("r1", dead, grace=1) == 0
        assert [each.pid for each in stage.napping()] == [stranger.pid]
        os.kill(stranger.pid, signal.SIGKILL)

    play(tmp_path, story)


def test_we_never_end_ourselves_nor_those_we_come_from(tmp_path: Path) -> None:
    """Whatever a record says: we live to tell."""

    async def story(stage: Stage) -> None:
        for pid in (os.getpid(), os.getppid(), 1):
            assert await stage.port.stop("r1", identify(pid), grace=0) == 0

    play(tmp_path, story)


def test_many_are_stopped_at_once(tmp_path: Path) -> None:
    """Thirty stops share their looks at the system, and each ends its own."""

    async def story(stage: Stage) -> None:
        runs = [f"r{number}" for number in range(30)]
        identities = await asyncio.gather(*(stage.start(run, 'exec sleep "$NAP"') for run in runs))
        both = zip(runs, identities, strict=True)
        counts = await asyncio.gather(*(stage.port.stop(run, each, grace=10) for run, each in both))
        assert counts == [2] * 30
        assert {await stage.port.exit_code(run) for run in runs} == {143}

    play(tmp_path, story)


def test_one_that_complies_costs_two_looks_at_the_system() -> None:
    """One look finds whom to ask, and one sees that nobody is left: each look reads every process there is."""

    async def story(child: Process) -> None:
        looks: list[bool] = []

        async def survey() -> ProcessTable:
            looks.append(bool(looks) and await all_gone([child.identity], patience.seconds(5)))
            return ProcessTable([] if looks[-1] else [child])

        assert await ProcessTree(survey, lambda _: False, root=child.identity).end(grace=patience.seconds(5)) == 1
        assert looks == [False, True]

    with subprocess.Popen(["sleep", "60"]) as sleeper:
        found = process(sleeper.pid)
        assert found
        asyncio.run(story(found))
        sleeper.kill()


def test_a_run_is_adopted_after_its_starter_was_killed(tmp_path: Path) -> None:
    """Another process follows it, by saved identity or by stamp, and gets the rest and the exit code."""
    starter = """
import asyncio, json, os, sys
from pathlib import Path
from windlass.core.ports.processes import Launch
from windlass.process.detached import DetachedProcesses
from windlass.process.starting.spawner import Spawner
async def main():
    port = DetachedProcesses(Path(sys.argv[1]), sys.argv[2], Spawner())
    script = "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second; exit 6"
    launch = Launch(run="r1", argv=("sh", "-c", script), cwd=str(Path(sys.argv[1]).parent), environment={})
    identity = await port.start(launch)
    print(json.dumps([identity.pid, identity.started, identity.boot]), flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""

    async def story(stage: Stage) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        dead = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", starter, str(tmp_path / "runs"), stage.home],
            env=environment,
            capture_output=True,
            check=False,
        )
        assert dead.returncode == -9
        pid, started, boot = json.loads(dead.stdout)
        identity = Identity(pid, started, boot)
        assert boot == boot_id()
        assert await stage.port.alive(identity)
        assert await stage.port.find("r1") == identity

        gone = asyncio.Event()
        stage.port.follow("r1", identity, when_gone(identity, gone))
        await until(lambda: stage.said("r1") == "first\n")
        (tmp_path / "go").touch()
        await asyncio.wait_for(gone.wait(), patience.seconds(20))

        assert stage.said("r1") == "first\nsecond\n"
        assert await stage.port.exit_code("r1") == 6

    play(tmp_path, story)
