"""Work in a person's own repository: where it lands, what its end means, and how it is stopped and followed."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage, adds, lines, stage
from process_table import lives

from patience import until

pytestmark = pytest.mark.xdist_group("work")  # most of it shares one daemon


@pytest.fixture
def house(room: Stage) -> Stage:
    """One daemon for all: what a test knows of is its own repository."""
    return room


# ── where main is ────────────────────────────────────────────────────────────────────────────────────────────


class TestLandingPlaces:
    def test_in_the_checkout_that_main_is_in(self, house: Stage) -> None:
        """The landed file is in the person's checkout, which is clean and on main."""
        view = house.land("Add b", adds("b.txt", "bee"))
        assert view["landed"]
        assert (house.repo / "b.txt").read_text() == "bee\n"
        assert (house.repo / "b.txt").stat().st_mode == (house.repo / "README.md").stat().st_mode
        assert house.git("status", "--porcelain", "--branch") == "## main"
        assert house.git("log", "-1", "--format=%s") == f"Land {house.change(1)}: Add b"

    def test_on_main_while_the_person_is_on_another_branch(self, house: Stage) -> None:
        """Main moves; the branch that is checked out, its files and its index stay."""
        house.git("checkout", "-q", "-b", "feature")
        house.commit({"mine.txt": "mine\n"})
        before = house.git("rev-parse", "HEAD")
        house.land("Add b", adds("b.txt"))
        assert house.git("show", "main:b.txt") == "new"
        assert not (house.repo / "b.txt").exists()
        assert house.git("rev-parse", "HEAD") == before
        assert house.git("status", "--porcelain", "--branch") == "## feature"

    def test_in_a_linked_worktree_that_has_main(self, house: Stage) -> None:
        """Where main is checked out elsewhere, the file appears there, and both checkouts are clean."""
        elsewhere = house.folder / "else where"
        house.git("checkout", "-q", "-b", "feature")
        house.git("worktree", "add", "-q", str(elsewhere), "main")
        house.land("Add b", adds("b.txt"))
        assert (elsewhere / "b.txt").read_text() == "new\n"
        assert not (house.repo / "b.txt").exists()
        assert house.git("status", "--porcelain", "--branch", cwd=elsewhere) == "## main"
        assert house.git("status", "--porcelain", "--branch") == "## feature"

    def test_asked_for_in_a_folder_below_or_a_linked_worktree(self, house: Stage) -> None:
        """The same project is meant from wherever in it `work` is typed."""
        (house.repo / "deep/down").mkdir(parents=True)
        linked = house.folder / "linked"
        house.git("worktree", "add", "-q", "-b", "other", str(linked))
        for number, place in enumerate((house.repo / "deep/down", linked), start=1):
            house.wl("work", "Add", "--command", adds(f"{number}.txt"), "--wait", cwd=place)
        assert house.git("ls-files").split() == ["1.txt", "2.txt", "README.md"]
        assert len({agent["project"] for agent in house.agents()}) == 1


# ── what is in the way ───────────────────────────────────────────────────────────────────────────────────────


class TestLocalChanges:
    def test_that_are_unrelated_survive(self, house: Stage) -> None:
        """Changed, staged and untracked files of the person's are as they were, and the change lands beside them."""
        house.commit({"staged.txt": "old\n"})
        (house.repo / "README.md").write_text("# My own words\n")
        (house.repo / "staged.txt").write_text("staged\n")
        house.git("add", "staged.txt")
        (house.repo / "note.txt").write_text("untracked\n")
        house.land("Add b", adds("b.txt"))
        assert (house.repo / "b.txt").exists()
        assert house.git("status", "--porcelain").splitlines() == [" M README.md", "M  staged.txt", "?? note.txt"]
        assert (house.repo / "README.md").read_text() == "# My own words\n"

    @pytest.mark.slow
    def test_that_collide_hold_the_change_until_they_are_out_of_the_way(self, house: Stage) -> None:
        """It is held with git's reason, nothing of the person's is touched, and after a stash it lands by itself."""
        (house.repo / "README.md").write_text("# My own words\n")
        told = house.wl("work", "Rewrite", "--command", adds("README.md", "theirs"), "--wait", code=1)
        assert f"{house.change(1)} is held" in told.err
        assert "README.md" in told.err
        assert (house.repo / "README.md").read_text() == "# My own words\n"
        assert house.git("log", "--format=%s") == "Begin"
        [change] = house.wl("queue", "--json").value
        assert change["state"] == "held"
        assert "overwritten by merge" in change["reason"]

        house.git("stash", "-q")
        house.event("change.landed")

        assert (house.repo / "README.md").read_text() == "theirs\n"
        assert len(house.agent(change["agent"])["runs"]) == 1, "the author had nothing to do with it"
        assert [event["kind"] for event in house.events()].count("change.tested") == 1, "the tree had been tested"

    def test_that_are_untracked_and_collide_are_never_overwritten(self, house: Stage) -> None:
        """An untracked file where a landed one would be holds the change, and stays."""
        (house.repo / "b.txt").write_text("mine\n")
        told = house.wl("work", "Add b", "--command", adds("b.txt", "theirs"), "--wait", code=1)
        assert "b.txt" in told.err
        assert (house.repo / "b.txt").read_text() == "mine\n"
        assert house.git("log", "--format=%s") == "Begin"

    def test_that_are_ignored_and_collide_are_never_overwritten(self, house: Stage) -> None:
        """A file that git is told to ignore is the person's, too."""
        house.commit({".gitignore": "*.local\n"})
        (house.repo / "my.local").write_text("mine\n")
        command = lines("echo theirs > my.local", "git add -f my.local", "git commit -qm 'Add it'")
        house.wl("work", "Add it", "--command", command, "--wait", code=1)
        assert (house.repo / "my.local").read_text() == "mine\n"


# ── what an agent's end means ────────────────────────────────────────────────────────────────────────────────


class TestEndings:
    def test_waiting_ends_with_0_only_for_a_landing(self, house: Stage) -> None:
        """`--wait` is 0 when it landed, 1 when it failed and 1 when there was nothing to land."""
        told = house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=0)
        assert "landed" in told.out
        assert f"windlass receipt {house.change(1)}" in told.out
        script = house.script("- error: There is no database.\n")
        told = house.wl("work", "Fail", "--script", script, "--wait", code=1)
        assert "There is no database." in told.err
        told = house.wl("work", "Nothing", "--script", house.script("- done: Looked at it.\n"), "--wait", code=1)
        assert "nothing to land" in told.err

    def test_waiting_ends_with_7_when_the_time_is_up(self, house: Stage) -> None:
        """The agent goes on, and the words say so."""
        told = house.wl("work", "Take long", "--command", "sleep 600", "--wait", "--timeout", "0.5s", code=7)
        assert "it goes on" in told.err
        [agent] = house.wl("list", "--here", "--json").value
        assert agent["status"] == "running"
        house.wl("stop", agent["name"])
        house.event("run.finished")

    def test_waiting_can_be_interrupted(self, house: Stage) -> None:
        """Ctrl-C ends the waiting with 130, not the work."""
        waiting = house.begin("work", "Take long", "--command", "sleep 600", "--wait")
        until((house.state / "daemon.sock").exists, "the daemon")
        house.event("run.started")
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=WITHIN)
        assert waiting.returncode == 130
        assert b"goes on" in err
        [agent] = house.wl("list", "--here", "--json").value
        assert agent["status"] == "running"
        house.wl("stop", "--all")
        house.event("run.finished")

    def test_an_agent_killed_from_outside_is_tried_again(self, house: Stage) -> None:
        """Nobody could tell an exit code: that is said, and the next run goes on."""
        name = house.play("Hang", "runs:\n  - - hang\n  - - write: {b.txt: b}\n    - commit: b\n    - done\n")
        os.killpg(house.pid(name), signal.SIGKILL)
        house.event("change.landed")
        first, second = house.agent(name)["runs"]
        assert (first["outcome"], first["exit_code"], first["reason"]) == (
            "crashed",
            None,
            "it was killed, without a signal",
        )
        assert second["outcome"] == "done"

    def test_no_more_run_at_once_than_allowed(self) -> None:
        """The second agent waits for the first one's slot, and says so."""
        with stage(settings="[limits]\nruns = 1\n") as house:
            go = house.flag("go")
            house.work("One", lines(house.waits_for(go), adds("a.txt")))
            house.event("run.started", "r1")
            second = house.work("Two", adds("b.txt"))
            shown = house.agent(second)
            assert (shown["status"], shown["evidence"], shown["runs"]) == ("idle", "waits for a free slot", [])
            go.touch()
            house.event("change.landed", "c2")

    def test_done_with_uncommitted_files_is_reminded(self, house: Stage) -> None:
        """The agent is told which files, commits them, and the change lands."""
        view = house.land_script(
            "Forget",
            """
runs:
  - - write: {b.txt: "b\\n", c.txt: "c\\n"}
    - run: git add b.txt && git commit -qm b
    - done
  - - expect: "not committed: c.txt"
    - commit: The rest
    - done
""",
        )
        runs = house.agent(view["agent"]["name"])["runs"]
        assert [run["cause"] for run in runs] == ["task", "reminder"]
        assert "left c.txt uncommitted" in runs[0]["reason"]
        assert house.git("ls-files").split() == ["README.md", "b.txt", "c.txt"]

    def test_an_end_without_a_signal_is_reminded_and_then_an_error(self, house: Stage) -> None:
        """Silence is never taken for success: one reminder, then the task fails and says why."""
        told = house.wl("work", "Be silent", "--script", house.script("- say: Hm.\n"), "--wait", code=1)
        assert "ended without a signal" in told.err
        [agent] = house.wl("list", "--here", "--all", "--json").value
        assert agent["status"] == "error"
        runs = house.agent(agent["name"])["runs"]
        assert [(run["cause"], run["outcome"]) for run in runs] == [("task", "crashed"), ("reminder", "crashed")]

    def test_a_crash_is_tried_again_and_its_work_kept(self, house: Stage) -> None:
        """The second run finds the files of the first one."""
        view = house.land_script(
            "Crash once",
            """
runs:
  - - write: {b.txt: "b\\n"}
    - crash
  - - run: test -e b.txt
    - commit: Add b
    - done
""",
        )
        first, second = house.agent(view["agent"]["name"])["runs"]
        assert (first["outcome"], first["exit_code"], second["outcome"]) == ("crashed", 137, "done")

    def test_a_failed_tasks_worktree_and_branch_are_kept(self, house: Stage) -> None:
        """Work that did not land is never removed: its folder is there, its branch in the person's repository."""
        script = "- write: {b.txt: b}\n- commit: Half\n- write: {c.txt: c}\n- error: Stuck.\n"
        house.wl("work", "Get stuck", "--script", house.script(script), "--wait", code=1)
        [agent] = house.wl("list", "--here", "--all", "--json").value
        shown = house.agent(agent["name"])
        assert (Path(shown["worktree"]) / "c.txt").read_text() == "c"
        assert house.git("log", "-1", "--format=%s", shown["branch"]) == "Half"

    def test_a_question_waits_for_its_answer_and_then_goes_on(self, house: Stage) -> None:
        """The task waits, the person sees the question, and the answer is in the next run's prompt."""
        script = """
runs:
  - - ask: Red or blue?
  - - expect: Make it blue.
    - write: {colour.txt: "blue\\n"}
    - commit: Blue
    - done
"""
        told = house.wl("work", "Paint", "--script", house.script(script), "--wait", code=1)
        assert "asks:" in told.err
        assert "Red or blue?" in told.err
        [agent] = house.wl("list", "--here", "--json").value
        assert agent["status"] == "waiting"
        assert "Red or blue?" in house.wl("show", agent["name"]).out
        house.wl("answer", agent["name"], "Make it blue.")
        house.event("change.landed")
        assert (house.repo / "colour.txt").read_text() == "blue\n"
        assert house.agent(agent["name"])["questions"] == []
        assert "no open question" in house.wl("answer", agent["name"], "Again.", code=4).err

    def test_complete_said_by_command_ends_the_run(self) -> None:
        """`windlass agent complete` is a signal like the file: the report is kept and the change lands."""
        with stage(settings="[daemon]\nstop_grace_seconds = 0.2\n") as house:
            command = lines(adds("b.txt"), "windlass agent complete 'All of it.'", "sleep 600")
            view = house.land("Add b", command)
            shown = house.agent(view["agent"]["name"])
            assert shown["runs"][0]["outcome"] == "done"
            assert "All of it." in [each["body"] for each in shown["reports"]]


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────


class TestStop:
    def test_ends_the_whole_tree(self) -> None:
        """Also what has a session of its own, no parent any more, or does not listen; and no run follows."""
        with stage(settings="[daemon]\nstop_grace_seconds = 0.3\n") as house:
            command = (
                "setsid sleep 600 & echo $! > a.pid; (setsid sh -c 'echo $$ > b.pid; exec sleep 600' &); "
                "trap '' TERM; sleep 600 & echo $! > c.pid; echo $$ > d.pid; while :; do sleep 1; done"
            )
            name = house.work("Spread", command, "--sandbox", "off")  # where pids are the same inside and outside
            tree = Path(house.agent(name)["worktree"])
            pids = [until(partial(_number, tree / f"{each}.pid"), each) for each in "abcd"]
            assert all(map(lives, pids))
            assert f"Stopped {name}." in house.wl("stop", name).out
            house.event("task.cancelled")
            assert not list(filter(lives, pids))
            shown = house.agent(name)
            assert (shown["status"], [each["outcome"] for each in shown["runs"]]) == ("stopped", ["stopped"])
            assert tree.is_dir(), "what it has done stays"
            assert "nothing to stop" in house.wl("stop", name, code=4).err

    def test_all_ends_every_agent(self, house: Stage) -> None:
        """Every agent at work is named and ended; the next time nothing was running."""
        names = {house.work(f"Work {each}", "sleep 600") for each in (1, 2)}
        for name in names:
            house.pid(name)
        assert set(house.wl("stop", "--all", "--json").value["stopped"]) == names
        until(lambda: {house.agent(each)["status"] for each in names} == {"stopped"}, "all to stop")
        assert "Nothing was running in repo." in house.wl("stop", "--all").out


def _number(file: Path) -> int:
    return int(file.read_text() or 0) if file.exists() else 0


# ── following ────────────────────────────────────────────────────────────────────────────────────────────────


class TestFollowing:
    def test_logs_follow_without_gap_or_doubling(self, house: Stage) -> None:
        """One who joins in the middle gets the history and then every byte as it comes, once."""
        half, go = house.flag("half"), house.flag("go")
        name = house.work(
            "Count",
            f"seq 1 2000; printf 'half'; touch '{half}'; {house.waits_for(go)}; "
            "for i in 1 2 3 4 5; do seq 1 500; sleep 0.05; done; printf '\\377\\000 end'; " + adds("b.txt"),
        )
        until(half.exists, "half of it")
        follower = house.begin("logs", name, "-f", "--raw")
        assert follower.stdout
        first = os.read(follower.stdout.fileno(), 10)
        go.touch()
        rest, _ = follower.communicate(timeout=WITHIN)
        count = "".join(f"{each}\n" for each in range(1, 2001)).encode()
        five = "".join(f"{each}\n" for each in range(1, 501)).encode() * 5
        assert first + rest == count + b"half" + five + b"\377\0 end"
        assert follower.returncode == 0
        assert house.raw("logs", name, "--raw") == first + rest

    def test_logs_follow_across_daemons(self, house: Stage) -> None:
        """Whether the daemon leaves or dies, following goes on with the next one, where it was."""
        go = house.flag("go")
        name = house.work("Say", lines("echo one", house.waits_for(go), "echo two", adds("b.txt")))
        house.event("run.output")
        follower = house.begin("logs", name, "-f")
        assert follower.stdout
        assert os.read(follower.stdout.fileno(), 100) == b"one\n"
        house.wl("daemon", "stop")
        house.wl("list")
        os.kill(house.daemon, signal.SIGKILL)
        go.touch()
        house.wl("list")
        out, err = follower.communicate(timeout=WITHIN)
        assert (follower.returncode, out) == (0, b"two\n"), err

    def test_diff_shows_an_agents_worktree_as_it_is(self, house: Stage) -> None:
        """Before it lands, the difference has what is committed, changed and new."""
        ready = house.flag("ready")
        name = house.work(
            "Add",
            lines(adds("b.txt", "bee"), "echo more >> README.md", "echo new > c.txt", f"touch '{ready}'", "sleep 600"),
        )
        until(ready.exists, "the files")
        shown = house.wl("diff", name).out
        assert {"+bee", "+more", "+new"} <= set(shown.splitlines())
        house.wl("stop", name)

    def test_watch_follows_what_happens(self, house: Stage) -> None:
        """From now on, each event once and in order, across a restart of the daemon."""
        house.wl("daemon", "start")
        watcher = house.begin("watch", "--since", str(house.since), "--kind", "task.*")
        assert watcher.stdout
        house.wl("work", "One", "--script", house.script("- done\n"), "--wait", code=1)
        seen = [watcher.stdout.readline()]
        house.wl("daemon", "stop")
        house.wl("work", "Two", "--script", house.script("- done\n"), "--wait", code=1)
        seen += [watcher.stdout.readline() for _ in range(3)]
        events = [json.loads(line) for line in seen]
        assert [event["kind"] for event in events] == ["task.added", "task.done"] * 2
        one, one_again, two, two_again = (event["subject"] for event in events)
        assert one == one_again != two == two_again


def test_a_plan_is_a_document_and_no_change(house: Stage) -> None:
    """`--mode plan` asks for a plan; what is written to the project's files meanwhile stays out of main."""
    house.wl("init", "--checks", "true")
    script = f'echo "First this." | windlass context document write - --name plan; {adds("stray")}'
    added = house.wl("work", "Split the parser", "--command", script, "--mode", "plan", "--json").value
    until(lambda: house.agent(added["agent"])["status"] == "completed", "the plan")

    assert added["task"]["mode"] == "plan"
    assert house.queue() == []
    assert "First this." in house.wl("context", "document", "read", "--name", "plan").out
    assert house.wl("work", "Split it", "--mode", "review", "--command", "true", code=2).err
