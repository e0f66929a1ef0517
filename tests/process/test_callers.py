"""Tracing a caller to its run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from process_stage import Stage, play, until

from windlass.core.errors import NotAllowed
from windlass.core.nouns.run import Identity
from windlass.daemon.doctor import about_callers
from windlass.process.caller_run import CallerTrace, can_pin_callers
from windlass.process.proc import boot_id, identify, is_alive
from windlass.process.shell import sweep


def trace(stage: Stage, pid: int) -> str:
    """The run of a process that lives."""
    return CallerTrace(stage.port.leaders).trace(pid, lambda: False)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param('exec sleep "$NAP"', id="the program itself"),
        pytest.param('env -i sleep "$NAP"; true', id="a child"),
        pytest.param('setsid env -i sh -c "sleep $NAP; true"; true', id="a descendant in another session"),
        pytest.param('(env -i sleep "$NAP" &); sleep 600', id="an orphan"),
        pytest.param('(setsid env -i sleep "$NAP" &); sleep 600', id="an orphan in another session"),
        pytest.param('(setsid env -i WINDLASS_RUN=r2 sleep "$NAP" &); sleep 600', id="one with another's variables"),
    ],
)
def test_a_process_inside_a_run_is_traced_to_it(tmp_path: Path, script: str) -> None:
    """However deep it is and whatever became of its parents, session and environment, it belongs to the run."""

    async def story(stage: Stage) -> None:
        other = await stage.start("r2", "sleep 600")
        identity = await stage.start("r1", script)
        await until(stage.napping)
        pid = stage.napping()[-1].pid

        assert trace(stage, pid) == "r1"
        assert trace(stage, identity.pid) == "r1"
        assert trace(stage, other.pid) == "r2"
        await stage.port.stop("r1", identity, grace=5)
        await stage.port.stop("r2", other, grace=5)

    play(tmp_path, story)


@pytest.mark.parametrize("script", ['exec sleep "$NAP"', '(setsid env -i sleep "$NAP" &); sleep 600'])
def test_what_a_killed_shim_leaves_is_nobody(tmp_path: Path, script: str) -> None:
    """An agent can kill its own shim: what is left is neither the run any more nor the person, and can be stopped."""

    async def story(stage: Stage) -> None:
        identity = await stage.start("r1", script)
        await until(stage.napping)
        os.kill(identity.pid, signal.SIGKILL)
        await until(lambda: not is_alive(identity))
        for known in (True, False):
            if not known:
                stage.port.forget("r1")
            with pytest.raises(NotAllowed, match="belongs to no run"):
                trace(stage, stage.napping()[0].pid)
        await stage.port.stop("r1", identity, grace=5)
        assert stage.stamped() == []

    play(tmp_path, story)


def test_what_a_check_starts_is_nobody(tmp_path: Path) -> None:
    """Neither it nor what it left behind is a person."""

    async def story(stage: Stage) -> None:
        shell = stage.command("check", '(setsid env -i sleep "$NAP" &); sleep "$NAP"')
        await until(lambda: len(stage.napping()) == 2)
        for pid in (shell.pid, *(each.pid for each in stage.napping())):
            with pytest.raises(NotAllowed, match="belongs to no run"):
                trace(stage, pid)
        await sweep(stage.home)

    play(tmp_path, story)


def test_a_later_process_with_a_leaders_pid_is_not_the_run(tmp_path: Path) -> None:
    """Pid, start time and boot make a leader; the numbers of another are not enough."""

    async def story(stage: Stage) -> None:
        own = identify(os.getpid())
        assert own is not None
        stage.port.know("r1", Identity(own.pid, own.started - 1, own.boot))
        stage.port.know("r2", Identity(own.pid, own.started, "another boot"))
        assert trace(stage, own.pid) == ""
        stage.port.know("r3", own)
        assert trace(stage, own.pid) == "r3"
        stage.port.forget("r3")
        assert trace(stage, own.pid) == ""

    play(tmp_path, story)


def test_a_process_in_a_session_that_a_run_began_is_no_person(tmp_path: Path) -> None:
    """Also where it does not descend from the run's first process, which has gone."""

    async def story(stage: Stage) -> None:
        left = stage.stranger("sleep")
        assert trace(stage, left.pid) == ""
        stage.port.know("r1", Identity(left.session, left.started - 1, boot_id()))
        with pytest.raises(NotAllowed, match="belongs to no run"):
            trace(stage, left.pid)
        os.kill(left.pid, signal.SIGKILL)

    play(tmp_path, story)


def test_a_session_of_a_stranger_with_a_leaders_pid_is_not_the_runs(tmp_path: Path) -> None:
    """No pid is given away while a session has its number: so none of those in the run's session is left."""

    async def story(stage: Stage) -> None:
        stranger = stage.stranger("setsid sleep")
        assert stranger.session == stranger.pid
        stage.port.know("r1", Identity(stranger.pid, stranger.started - 1, boot_id()))
        assert trace(stage, stranger.pid) == ""
        os.kill(stranger.pid, signal.SIGKILL)

    play(tmp_path, story)


def test_a_process_outside_every_run_is_the_persons(tmp_path: Path) -> None:
    """We ourselves, and what was started from elsewhere; what the daemon itself started is nobody."""

    async def story(stage: Stage) -> None:
        assert trace(stage, os.getpid()) == ""
        assert trace(stage, 1) == ""
        child = subprocess.Popen(("sleep", stage.token))  # noqa: ASYNC220 - it starts at once
        with pytest.raises(NotAllowed):
            trace(stage, child.pid)
        child.kill()
        child.wait()

    play(tmp_path, story)


def ended_child() -> int:
    """A child that has exited and is not reaped."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


def reap(pid: int) -> None:
    os.waitpid(pid, 0)


def test_who_has_gone_is_refused(tmp_path: Path) -> None:
    """A caller that has exited, reaped or not, does not pass for a human; nor does one that we can't see."""

    async def story(stage: Stage) -> None:
        pid = ended_child()
        with pytest.raises(NotAllowed, match=str(pid)):
            trace(stage, pid)
        reap(pid)
        with pytest.raises(NotAllowed, match=str(pid)):
            trace(stage, pid)
        with pytest.raises(NotAllowed):
            trace(stage, 0)
        with pytest.raises(NotAllowed, match="has gone"):
            CallerTrace(stage.port.leaders).trace(os.getpid(), lambda: True)

    play(tmp_path, story)


class TestConnection:
    def test_is_whoever_made_it(self) -> None:
        """A socket pair is the work of its own process."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            assert CallerTrace({}).identify(ours) == ""

    def test_of_one_who_has_gone_is_nobodys(self, tmp_path: Path) -> None:
        """Its pid may be another's by now, who is not asked; also when its child holds the connection open."""
        door = socket.socket(socket.AF_UNIX)
        with door:
            door.bind(str(tmp_path / "door"))
            door.listen()
            code = (
                f"import os, socket; s = socket.socket(1); s.connect({str(tmp_path / 'door')!r})\nos.fork() or input()"
            )
            caller = subprocess.Popen((sys.executable, "-I", "-S", "-c", code), stdin=subprocess.PIPE)
            connection, _ = door.accept()
            caller.wait()
            with connection, pytest.raises(NotAllowed, match="has gone"):
                CallerTrace({}).identify(connection)
            caller.communicate()


def test_the_doctor_names_a_kernel_that_does_not_hold_callers() -> None:
    """Where it does, nothing is to be feared; this one is asked for real."""
    assert "Linux 6.5" in about_callers(pinned=False).detail
    assert "Linux" not in about_callers(pinned=True).detail
    assert can_pin_callers() or tuple(map(int, os.uname().release.split(".")[:2])) < (6, 5)
