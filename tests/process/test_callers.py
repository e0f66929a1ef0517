"""Tracing a caller to its run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from process_stage import Stage, play, until

from windlass.core.errors import NotAllowed
from windlass.process.caller_run import trace


@pytest.mark.parametrize(
    "script",
    [
        pytest.param('exec sleep "$NAP"', id="its own marker"),
        pytest.param('env -i sleep "$NAP"; true', id="its parent's"),
        pytest.param('setsid env -i sh -c "sleep $NAP; true"; true', id="an ancestor's, from another session"),
        pytest.param('(env -i sleep "$NAP" &); sleep 600', id="its session's, after its parent has gone"),
    ],
)
def test_a_process_inside_a_run_is_traced_to_it(tmp_path: Path, script: str) -> None:
    """However deep it is and whatever became of its environment, it belongs to the run."""

    async def story(stage: Stage) -> None:
        identity = await stage.start("r1", script)
        await until(stage.napping)
        pid = stage.napping()[-1].pid

        assert trace(pid, stage.home) == "r1"
        assert trace(identity.pid, stage.home) == "r1"
        await stage.port.stop("r1", identity, grace=5)

    play(tmp_path, story)


def test_a_run_of_another_home_is_no_run_of_ours(tmp_path: Path) -> None:
    """Homes are compared whole: one whose name only begins like ours is another."""

    async def story(stage: Stage) -> None:
        identity = await stage.start("r1", 'exec sleep "$NAP"')
        assert trace(identity.pid, stage.home[:-1]) is None
        assert trace(identity.pid, "another") is None
        await stage.port.stop("r1", identity, grace=5)

    play(tmp_path, story)


def test_a_process_outside_every_run_is_nobodys() -> None:
    """We ourselves, and the first process, belong to no run."""
    assert trace(os.getpid(), "no-such-home") is None
    assert trace(1, "no-such-home") is None


def test_who_has_gone_is_refused() -> None:
    """A caller that has exited, reaped or not, does not pass for a human; nor does one that we can't see."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(NotAllowed, match=str(pid)):
        trace(pid, "no-such-home")
    os.waitpid(pid, 0)
    with pytest.raises(NotAllowed, match=str(pid)):
        trace(pid, "no-such-home")
    with pytest.raises(NotAllowed):
        trace(0, "no-such-home")
