"""The daemon may die at any moment: agents go on, the next command starts one, and nothing is lost or done twice."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage, adds, exact, lines, stage
from process_table import inhabitants, lives

from patience import until

CONFLICT, UNAVAILABLE = 4, 6


def kill(house: Stage) -> int:
    """SIGKILL the daemon; returns the pid that it had."""
    pid = house.daemon
    os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid), "the daemon to die")
    return pid


def grown(file: Path, size: int) -> bool:
    return file.stat().st_size > size


def counted(house: Stage, kind: str) -> int:
    return [event["kind"] for event in house.events()].count(kind)


# ── killed ───────────────────────────────────────────────────────────────────────────────────────────────────


class TestKilledWhileAgentsWork:
    def test_they_go_on_and_their_changes_land(self, house: Stage) -> None:
        """The next command starts a daemon that finds them: same process, no second run, exit code known."""
        go = house.flag("go")
        names = [house.work(f"Add {each}", lines(house.waits_for(go), adds(f"{each}.txt"))) for each in "ab"]
        pids = [house.pid(each) for each in names]
        old = kill(house)
        assert all(map(lives, pids))

        listed = {each["name"]: each for each in house.wl("list", "--json").value}

        assert house.daemon != old
        assert {each["status"] for each in listed.values()} == {"running"}
        assert all(f"pid {pid} alive" in listed[name]["evidence"] for name, pid in zip(names, pids, strict=True))
        go.touch()
        for change in ("c1", "c2"):
            house.event("change.landed", change)
        assert sorted(house.git("ls-files").split()) == ["README.md", "a.txt", "b.txt"]
        for name in names:
            [run] = house.agent(name)["runs"]
            assert (run["outcome"], run["exit_code"]) == ("done", 0)

    def test_their_output_is_neither_lost_nor_doubled(self, house: Stage) -> None:
        """What was printed before, while nobody listened and after is there byte by byte."""
        go = house.flag("go")
        chatter = f"i=0; until [ -e '{go}' ]; do i=$((i+1)); printf 'line %d\\n' $i; sleep 0.002; done; printf 'no end'"
        name = house.work("Chatter", f"{chatter}; {adds('b.txt')}")
        house.event("run.output")
        output = house.state / "runs/r1/output"
        for _ in range(2):
            kill(house)
            until(partial(grown, output, output.stat().st_size), "more output")
            house.wl("list")
        kill(house)
        go.touch()
        house.wl("list")
        house.event("change.landed")
        printed = house.raw("logs", name, "--raw")
        *rows, last = printed.split(b"\n")
        assert rows == [b"line %d" % each for each in range(1, len(rows) + 1)]
        assert last == b"no end"
        assert printed == output.read_bytes()
        kept = [event for event in house.events() if event["kind"] == "run.output"]
        assert sum(each["length"] for each in kept) == len(printed)

    def test_one_that_ended_meanwhile_is_judged_by_its_own_exit_code(self, house: Stage) -> None:
        """Nobody was there when it ended; its shim has written down how."""
        go = house.flag("go")
        name = house.play("Fail", f"runs:\n  - - run: {house.waits_for(go)}\n    - exit: 3\n  - - error: Again.\n")
        pid = house.pid(name)
        kill(house)
        go.touch()
        until(lambda: not lives(pid), "the agent to end")
        house.wl("list")
        house.event("task.failed")
        first, second = house.agent(name)["runs"]
        assert (first["outcome"], first["exit_code"], first["reason"]) == (
            "crashed",
            3,
            "exit code 3, without a signal",
        )
        assert second["cause"] == "reminder"

    def test_a_signal_given_meanwhile_is_read(self) -> None:
        """`windlass agent complete` finds no daemon, leaves the signal, and does not start one."""
        with stage(settings="[daemon]\nstop_grace_seconds = 0.2\n") as house:
            go, said = house.flag("go"), house.flag("said")
            command = lines(
                house.waits_for(go),
                adds("b.txt"),
                f"windlass agent complete Mine. > '{said}.new'",
                f"mv '{said}.new' '{said}'",
                "sleep 600",
            )
            name = house.work("Add b", command)
            house.event("run.started")
            kill(house)
            go.touch()
            until(said.exists, "the agent's signal")
            assert "daemon, which is away" in said.read_text()
            house.wl("daemon", "status", code=UNAVAILABLE)
            house.wl("list")
            house.event("change.landed")
            assert "Mine." in [each["body"] for each in house.agent(name)["reports"]]

    def test_one_who_waits_is_told_the_end(self, house: Stage) -> None:
        """`work --wait` survives the daemon: it starts the next one and ends with the landing."""
        go = house.flag("go")
        waiting = house.begin("work", "Add b", "--command", lines(house.waits_for(go), adds("b.txt")), "--wait")
        until((house.state / "daemon.sock").exists, "the daemon")
        house.event("run.started")
        kill(house)
        go.touch()
        out, err = waiting.communicate(timeout=WITHIN)
        assert waiting.returncode == 0, err
        assert b"landed" in out


class TestKilledInTheGate:
    def test_a_check_is_run_again_and_its_leftovers_are_gone(self) -> None:
        """The old check's processes are ended, the new check decides, and the change lands once."""
        with stage(checks="true") as house:
            first, pid = house.flag("first"), house.flag("pid")
            hang = f"touch '{first}'; setsid sh -c 'echo $$ > {pid}; exec sleep 600' & sleep 600"
            check = f"if [ ! -e '{first}' ]; then {hang}; fi"
            house.wl("config", "set", "--home", "checks.command", check)
            house.work("Add b", adds("b.txt"))
            until(lambda: pid.exists() and pid.read_text().strip(), "the check")
            left = int(pid.read_text())
            kill(house)
            assert lives(left), "nobody was there to end it"
            assert house.git("log", "--format=%s") == "Begin"

            house.wl("list")
            house.event("change.landed")

            assert not lives(left)
            assert not [inhabitant for inhabitant in inhabitants(house.folder).values() if "sleep 600" in inhabitant]
            assert counted(house, "change.landed") == 1
            assert house.git("log", "--format=%s").splitlines()[0] == "Land c1: Add b"
            assert house.git("rev-list", "--count", "main") == "3"

    def test_stopped_during_a_check_it_ends_the_check(self, house: Stage) -> None:
        """A daemon that leaves takes its check along; the next one runs it again, and the change lands."""
        started, go = house.flag("started"), house.flag("go")
        house.wl("config", "set", "--home", "checks.command", f"touch '{started}'; {house.waits_for(go)}")
        house.work("Add b", adds("b.txt"))
        until(started.exists, "the check")
        house.wl("daemon", "stop")
        assert inhabitants(house.folder) == {}
        go.touch()
        house.wl("list")
        house.event("change.landed")
        assert counted(house, "change.landed") == 1

    @pytest.mark.slow
    def test_at_every_step_it_ends_as_if_nothing_had_happened(self, house: Stage) -> None:
        """Killed right after each step: one run, one check that counts, one landing, a clean checkout."""
        name = house.work("Add b", adds("b.txt"))
        for step in STEPS:
            house.event(step)
            kill(house)
            house.wl("list")
        house.event("agent.retired")
        [run] = house.agent(name)["runs"]
        assert (run["outcome"], run["exit_code"]) == ("done", 0)
        assert house.git("log", "--first-parent", "--format=%s").splitlines() == ["Land c1: Add b", "Begin"]
        assert counted(house, "change.landed") == counted(house, "change.queued") == counted(house, "run.finished") == 1
        assert house.git("status", "--porcelain") == ""
        assert house.git("for-each-ref", "refs/windlass") == "", "what was lent for the landing is given back"


STEPS = (
    "task.added run.starting run.started run.finished change.queued change.staged change.tested change.landed".split()
)


# ── leaving ──────────────────────────────────────────────────────────────────────────────────────────────────


class TestLeaving:
    def test_a_stopped_daemon_leaves_its_agents_at_work(self, house: Stage) -> None:
        """It drains and says that they go on; the next one adopts them and the change lands."""
        go = house.flag("go")
        name = house.work("Add b", lines("echo one", house.waits_for(go), "echo two", adds("b.txt")))
        pid = house.pid(name)
        assert "1 agents go on working" in house.wl("daemon", "stop").out
        assert not (house.state / "daemon.sock").exists()
        assert lives(pid)
        go.touch()
        until(lambda: not lives(pid), "the agent to end")
        house.wl("list")
        house.event("change.landed")
        assert house.raw("logs", name, "--raw") == b"one\ntwo\n"

    def test_stopping_none_is_no_error(self, house: Stage) -> None:
        """It says that none was running, and starts none."""
        assert "not running" in house.wl("daemon", "stop").out
        assert not (house.state / "daemon.sock").exists()
        assert "not running" in house.wl("daemon", "status", code=UNAVAILABLE).err

    @pytest.mark.slow
    def test_an_idle_one_leaves_but_not_while_a_run_lives(self) -> None:
        """With nothing to do it goes by itself after the time that is set; a live run keeps it, bad settings do not."""
        with stage(settings="[daemon]\nidle_minutes = 0.001\n") as house:
            house.work("Wait", "sleep 600")
            house.event("run.started")
            pid, file = house.daemon, house.state / "config.toml"
            good = file.read_text()
            file.write_text("nonsense\n")
            time.sleep(6)  # longer than it looks around for idleness: nothing else could show that it stays
            file.write_text(good)
            assert lives(pid)
            house.wl("stop", "--all")
            until(lambda: not lives(pid), "the daemon to leave")
            assert not (house.state / "daemon.sock").exists()
            house.wl("list")
            assert house.daemon != pid

    @pytest.mark.slow
    def test_one_whose_home_was_removed_leaves(self) -> None:
        """A daemon without a home serves nobody."""
        with stage() as house:
            house.wl("daemon", "start")
            pid = house.daemon
            (house.state / "daemon.sock").unlink()
            until(lambda: not lives(pid), "the daemon to leave")


# ── beginning ────────────────────────────────────────────────────────────────────────────────────────────────


class TestBeginning:
    def test_a_stale_socket_is_replaced(self, house: Stage) -> None:
        """A file that nobody listens on is no daemon."""
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(house.state / "daemon.sock"))
        house.land("Add b", adds("b.txt"))
        assert (house.repo / "b.txt").exists()

    def test_of_ten_at_once_one_wins_and_the_others_say_so(self, house: Stage) -> None:
        """One daemon for one home: the others name its pid and end with the code for a conflict."""
        words = (sys.executable, "-P", "-m", "windlass.daemon")
        ten = [
            subprocess.Popen(words, env=house.environment, cwd="/", stderr=subprocess.PIPE, start_new_session=True)
            for _ in range(10)
        ]
        until(lambda: sum(each.poll() is None for each in ten) == 1 and (house.state / "daemon.sock").exists(), "one")
        [winner] = [each for each in ten if each.poll() is None]
        losers = [each for each in ten if each is not winner]
        assert [loser.returncode for loser in losers] == [CONFLICT] * 9
        said = [loser.stderr.read().decode() for loser in losers if loser.stderr]
        assert all("already running" in each for each in said)
        assert house.ask("/status")["pid"] == winner.pid
        house.wl("daemon", "stop")
        assert winner.wait(WITHIN) == 0

    def test_of_ten_commands_at_once_all_find_the_same_daemon(self, house: Stage) -> None:
        """Nobody fails because another one was first, and none that came late takes over when that one is stopped."""
        ten = [house.begin("list", "--json") for _ in range(10)]
        ended = [each.communicate(timeout=WITHIN) for each in ten]
        assert [each.returncode for each in ten] == [0] * 10, ended
        house.wl("daemon", "stop")
        until(lambda: not inhabitants(house.folder), "the late ones to leave")
        assert (house.state / "daemon.log").read_text().count("listening") == 1

    def test_status_has_stable_keys(self, house: Stage) -> None:
        """`daemon status --json` has these, and the daemon's own troubles."""
        house.wl("daemon", "start")
        status = house.wl("daemon", "status", "--json").value
        assert exact("pid version uptime_seconds home agents troubles", status)
        assert (status["pid"], status["home"], status["agents"]) == (house.daemon, str(house.state), 0)
        assert house.wl("--version").out == f"windlass {status['version']}\n"

    def test_its_door_is_for_its_owner_only(self, house: Stage) -> None:
        """The home is closed to others, and so is the socket."""
        house.wl("daemon", "start")
        assert house.state.stat().st_mode & 0o777 == 0o700
        assert (house.state / "daemon.sock").stat().st_mode & 0o777 == 0o600
        for name in ("windlass.db", "daemon.log", "daemon.lock"):
            assert (house.state / name).stat().st_mode & 0o077 == 0, name

    def test_in_the_foreground_it_stays_in_the_terminal(self, house: Stage) -> None:
        """For service managers: it logs to the terminal, and leaves cleanly when asked to end."""
        process = house.begin("daemon", "start", "--foreground")
        until((house.state / "daemon.sock").exists, "the daemon")
        assert house.ask("/status")["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WITHIN)
        assert process.returncode == 0
        assert b"listening" in err
        assert not (house.state / "daemon.sock").exists()


def test_two_homes_do_not_disturb_each_other(house: Stage) -> None:
    """On one repository: each has its own daemon, agents and changes; stopping all of one leaves the other's."""
    with stage() as other:
        other.repo = house.repo
        mine = house.work("Wait here", "sleep 600")
        theirs = other.work("Wait there", "sleep 600")
        for each, name in ((house, mine), (other, theirs)):
            each.pid(name)
        assert house.daemon != other.daemon
        assert house.wl("stop", "--all", "--json").value["stopped"] == [mine]
        house.event("task.cancelled")
        assert other.agent(theirs)["status"] == "running"
        kill(house)
        house.wl("list")
        assert other.agent(theirs)["status"] == "running"
        other.wl("stop", theirs)
        other.event("task.cancelled")
        other.land("Add b", adds("b.txt"))
        house.land("Add c", adds("c.txt"))
        assert sorted(house.git("ls-files").split()) == ["README.md", "b.txt", "c.txt"]


def test_a_lost_worktree_fails_its_task_and_nothing_else(house: Stage) -> None:
    """An agent whose folder was removed under it is an error with that reason; the daemon goes on."""
    go = house.flag("go")
    name = house.work("Lose it", lines("cd /", house.waits_for(go)))
    house.event("run.started")
    worktree = Path(house.agent(name)["worktree"])
    until(worktree.exists, "the worktree")
    worktree.rename(house.folder / "stolen")
    go.touch()
    house.event("task.failed")
    assert "worktree is gone" in house.agent(name)["runs"][0]["reason"]
    house.land("Add b", adds("b.txt"))
