"""Locks left behind and worktrees lost: mended where only we work, named where others do, and nothing is damaged."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e_stage import Stage, adds, lines, stage
from process_table import lives

from patience import until

SHORT = "[daemon]\nstop_grace_seconds = 0.2\n"


def hub(house: Stage) -> Path:
    [found] = (house.state / "hubs").glob("*.git")
    return found


def landed(house: Stage) -> None:
    """Everything has landed, and every repository is sound."""
    until(lambda: {each["state"] for each in house.queue()} == {"landed"}, "all to land")
    house.wl("doctor", "--check")
    for repository in (house.repo, hub(house)):
        house.git("fsck", "--strict", "--no-dangling", cwd=repository)
    assert house.git("status", "--porcelain") == ""


@contextmanager
def a_git_at_work(repository: Path) -> Iterator[None]:
    """A process that works on the hub, as far as anyone can see."""
    environment = {"GIT_DIR": str(repository), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(["sleep", "600"], env=environment) as process:
        try:
            yield
        finally:
            process.kill()


class TestLocks:
    def test_left_in_our_own_folders_are_removed(self, house: Stage) -> None:
        """In the hub, in our index of an agent's worktree and in the checks' tree: nobody has to mend them by hand."""
        house.land("Add a", adds("a.txt"))
        go = house.flag("go")
        name = house.work("Add b", lines(house.waits_for(go), adds("b.txt")))
        house.event("run.started", "r2")
        [checks] = (house.state / "checks").glob("*")
        ours = [
            *(hub(house) / each for each in ("refs/heads/main.lock", "HEAD.lock", f"refs/heads/work/{name}.lock")),
            hub(house) / "windlass/indexes" / f"{name}.now.lock",
            checks / "tree.index.lock",
        ]
        for lock in ours:
            lock.touch()
        house.commit({"mine.txt": "mine\n"}, "Main moves, so that the hub's must")
        go.touch()
        landed(house)
        until(lambda: not any(lock.exists() for lock in ours), "the locks to be removed")  # git may hold one just now

    def test_of_a_git_that_lives_is_left_alone(self, house: Stage) -> None:
        """Someone works on the hub, so that the lock is theirs: the change waits and says for what."""
        house.land("Add a", adds("a.txt"))
        lock = hub(house) / "refs/heads/main.lock"
        with a_git_at_work(hub(house)):
            lock.touch()
            house.work("Add b", adds("b.txt"))
            held = until(lambda: [each for each in house.queue() if each["state"] == "held"], "it to wait")
            assert str(lock) in held[0]["reason"]
            assert lock.exists()
        house.wl("daemon", "stop")
        house.wl("list")
        landed(house)

    def test_in_the_persons_repository_are_named_and_kept(self, house: Stage) -> None:
        """It may be their git at work: the change waits, the words say what to remove, and then it lands."""
        lock = house.repo / ".git/index.lock"
        lock.write_text("theirs")
        told = house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
        assert f"{lock} exists" in told.err
        assert f"rm {lock}" in told.err
        assert f"rm {lock}" in house.wl("queue").out
        assert lock.read_text() == "theirs"
        assert house.git("log", "-1", "--format=%s", "main") == "Begin"
        lock.unlink()
        house.wl("daemon", "stop")  # a new one looks at once
        house.wl("list")
        landed(house)

    def test_on_the_persons_main_are_named_and_kept(self, house: Stage) -> None:
        """Nobody has main checked out: only the ref is locked."""
        house.git("checkout", "-q", "-b", "side")
        lock = house.repo / ".git/refs/heads/main.lock"
        lock.write_text("theirs")
        told = house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
        assert f"{lock} exists" in told.err
        assert lock.read_text() == "theirs"
        lock.unlink()
        house.wl("daemon", "stop")
        house.wl("list")
        landed(house)

    def test_of_a_killed_agents_git_are_gone_when_it_goes_on(self, house: Stage) -> None:
        """Killed in the middle of a commit, its next run can commit; a link among the locks leads nowhere."""
        canary = house.flag("canary.lock")
        canary.write_text("mine")
        dies = lines(
            "echo b > b.txt",
            "touch .git/index.lock .git/HEAD.lock .git/refs/heads/work/x.lock",
            f"ln -s {canary.parent} .git/refs/out",
            "kill -9 $$",
        )
        house.land("Add b", f"if [ -e b.txt ]; then git add -A && git commit -qm b; else {dies}; fi")
        assert canary.read_text() == "mine"
        assert (house.repo / "b.txt").read_text() == "b\n"


@pytest.mark.parametrize("how", ["removed", "replaced by a link", "and a late signal"])
def test_a_worktree_lost_under_a_running_agent_stops_it(how: str) -> None:
    """The agent is ended with all it started, its task fails with that reason, and its branch is kept."""
    with stage(settings=SHORT) as house:
        script = "runs:\n- [{write: {b.txt: half}}, {commit: Half}, {ask: Go on?}]\n- [{run: 'sleep 600'}]\n"
        name = house.play("Lose it", script)
        house.event("run.asked")
        house.wl("answer", name, "Yes.")
        house.event("run.started", "r2")
        pid = [each["pid"] for each in house.agent(name)["runs"]][-1]
        worktree = Path(house.agent(name)["worktree"])
        worktree.rename(house.folder / "stolen")
        if how == "replaced by a link":
            worktree.symlink_to(house.folder / "stolen")
        if how == "and a late signal":  # whoever writes one makes the folders that it needs
            (worktree / ".windlass/output").mkdir(parents=True)
        house.event("task.failed")
        run = house.agent(name)["runs"][-1]
        assert run["reason"].startswith(f"its worktree is gone; its branch is kept: work/{name} at ")
        assert "worktree lost" in run["evidence"]
        assert not lives(pid)
        assert house.git("show", f"work/{name}:b.txt") == "half"
        assert "its worktree is gone" in house.wl("show", name).out
        assert (house.folder / "stolen/b.txt").read_text().strip() == "half"
        house.land("Add c", adds("c.txt"))
        house.wl("doctor", "--check")
        shutil.rmtree(house.folder / "stolen")
