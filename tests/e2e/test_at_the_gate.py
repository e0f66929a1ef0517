"""The gate with the real daemon: what goes back, what is held, what is given up, and what is undone."""

from __future__ import annotations

import pytest
from e2e_stage import Stage, adds, lines, stage
from process_table import inhabitants

from patience import until

pytestmark = pytest.mark.xdist_group("gate")  # most of it shares one daemon
ANSWER = (
    "sh -c '[ ! -e answer.txt ] || grep -q 42 answer.txt || "
    '{ echo "answer.txt is wrong"; echo "  (it says `cat answer.txt`)"; exit 3; }\''
)


@pytest.fixture
def house(room: Stage) -> Stage:
    """One daemon for all: what a test knows of is its own repository."""
    return room


class TestGate:
    def test_a_red_check_goes_back_to_its_author_with_the_exact_output(self) -> None:
        """The author is woken with what the check printed, mends it, and the same change lands."""
        with stage(checks=ANSWER) as house:
            view = house.land_script(
                "Answer",
                """
runs:
  - - write: {answer.txt: "41\\n"}
    - commit: Answer
    - done: It is there.
  - - expect: "answer.txt is wrong\\n  (it says 41)"
    - expect: exit code 3
    - write: {answer.txt: "42\\n"}
    - commit: Mend
    - done: Mended.
""",
            )
            assert (view["change"]["id"], view["change"]["returns"]) == ("c1", 1)
            runs = house.agent(view["agent"]["name"])["runs"]
            assert [(run["cause"], run["outcome"]) for run in runs] == [("task", "done"), ("mail", "done")]
            assert (house.repo / "answer.txt").read_text() == "42\n"

    def test_a_conflict_goes_back_to_its_author_with_both_sides(self, house: Stage) -> None:
        """The author sees main's side and its own, resolves them, and the merge lands."""
        house.commit({"colour.txt": "red\n"})
        ready, go = house.flag("ready"), house.flag("go")
        name = house.play(
            "Paint it green",
            f"""
runs:
  - - write: {{colour.txt: "green\\n"}}
    - commit: Green
    - run: touch '{ready}'; {house.waits_for(go)}
    - done: Green.
  - - expect: conflicts with main
    - expect: "<<<<<<< main\\nblue\\n=======\\ngreen\\n>>>>>>> this change"
    - merge: {{ref: origin/main, take: ours}}
    - commit: Take main in
    - done: Resolved.
""",
        )
        until(ready.exists, "the agent's commit")
        house.commit({"colour.txt": "blue\n"}, "Blue")
        go.touch()
        house.event("change.landed")
        assert [each["outcome"] for each in house.agent(name)["runs"]] == ["done", "done"]
        assert (house.repo / "colour.txt").read_text() == "green\n"
        assert "Blue" in house.git("log", "--format=%s")

    def test_too_many_returns_hold_it_for_a_person(self) -> None:
        """After the allowed returns nobody is woken any more: the change is held, and a person is asked."""
        with stage(checks="echo never; test ! -e log.txt", settings="[limits]\nreturns = 1\n") as house:
            script = (
                '- write: {"{number}.txt": "{number}"}\n- append: {log.txt: "{number}\\n"}\n- commit: Try\n- done\n'
            )
            told = house.wl("work", "Try", "--script", house.script(script), "--wait", code=1)
            assert "c1 is held" in told.err
            assert "it went back 1 time" in told.err
            [agent] = house.wl("list", "--json").value
            assert agent["status"] == "waiting"
            assert len(house.agent(agent["name"])["runs"]) == 2
            assert house.ask("/changes/c1")["output"] == "never\n"
            assert house.git("log", "--format=%s") == "Begin"

    def test_a_change_held_for_a_person_goes_on_with_their_answer(self) -> None:
        """The person is asked, and their words reach the author together with what failed."""
        with stage(checks=ANSWER, settings="[limits]\nreturns = 0\n") as house:
            script = """
runs:
  - - write: {answer.txt: "41\\n"}
    - commit: Answer
    - done
  - - expect: It is one more.
    - expect: answer.txt is wrong
    - write: {answer.txt: "42\\n"}
    - commit: Mend
    - done
"""
            told = house.wl("work", "Answer", "--script", house.script(script), "--wait", code=1)
            [agent] = house.wl("list", "--json").value
            assert f"windlass answer {agent['name']}" in told.err
            shown = house.wl("show", agent["name"]).out
            assert f"What shall {agent['name']} do?" in shown
            house.wl("answer", agent["name"], "It is one more.")
            house.event("change.landed", "c1")
            assert (house.repo / "answer.txt").read_text() == "42\n"

    def test_a_held_change_can_be_given_up(self, house: Stage) -> None:
        """Stopping its agent, here with all others, closes it: it leaves the queue, and its branch stays."""
        (house.repo / "b.txt").write_text("mine\n")
        house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
        [agent] = house.wl("list", "--here", "--json").value
        assert f"Stopped {agent['name']}." in house.wl("stop", "--all").out
        assert house.wl("queue", "--here", "--json").value == []
        shown = house.agent(agent["name"])
        assert (shown["status"], shown["change"]["state"]) == ("stopped", "closed")
        assert house.git("log", "-1", "--format=%s", shown["branch"]) == "Add b.txt"

    def test_a_change_in_line_can_be_given_up(self, house: Stage) -> None:
        """Whether it waits or is under test, whose check is ended; what was given up never lands, the next one does."""
        started, go = house.flag("started"), house.flag("go")
        check = f"[ ! -e a.txt ] || {{ touch '{started}'; {house.waits_for(go)}; }}"
        house.set_checks(check)
        first = house.work("Add a", adds("a.txt"))
        until(started.exists, "the check")
        second = house.work("Add b", adds("b.txt"))
        until(lambda: len(house.queue()) == 2, "the second change")
        house.wl("stop", second)
        house.wl("stop", first)
        assert [each["state"] for each in house.queue()] == ["closed", "closed"]
        house.land("Add c", adds("c.txt"))
        assert house.git("ls-files").split() == ["README.md", "c.txt"]

    def test_main_moved_by_the_person_meanwhile_is_tested_again(self, house: Stage) -> None:
        """What they commit while a check runs is in the tree that is tested before main moves."""
        started, go, seen = house.flag("started"), house.flag("go"), house.flag("seen")
        check = f"echo $(ls) >> '{seen}'; touch '{started}'; {house.waits_for(go)}"
        house.set_checks(check)
        house.work("Add b", adds("b.txt"))
        until(started.exists, "the check")
        house.commit({"mine.txt": "mine\n"})
        go.touch()
        house.event("change.landed")
        assert "README.md b.txt mine.txt" in seen.read_text().splitlines()
        assert house.ask(f"/changes/{house.change(1)}/receipt")["before"] == house.git("rev-parse", "main^1")
        assert house.git("status", "--porcelain") == ""

    def test_without_a_check_command_it_is_held_and_lands_once_there_is_one(self) -> None:
        """Nothing lands untested: the person is told which setting is missing, and setting it is all they do."""
        with stage(checks="") as house:
            told = house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
            assert "no check command" in told.err
            assert house.git("log", "--format=%s") == "Begin"
            [agent] = house.wl("list", "--json").value
            assert "windlass config set checks.command" in house.wl("show", agent["name"]).out
            house.wl("config", "set", "checks.command", "test -e b.txt")
            house.event("change.landed", "c1")
            assert (house.repo / "b.txt").exists()

    def test_checks_run_on_the_tree_that_main_will_have(self, house: Stage) -> None:
        """The second change is tested together with the first, though its author never saw that."""
        first, second, go = house.flag("first"), house.flag("second"), house.flag("go")
        check = f"if [ -e b.txt ]; then ls > '{second}'; elif [ -e a.txt ]; then ls > '{first}'; fi"  # not main itself
        house.set_checks(check)
        late = house.work("Add b", lines("touch b.txt", "git add -A", "git commit -qm b", house.waits_for(go)))
        house.land("Add a", adds("a.txt"))
        go.touch()
        until(lambda: [change["state"] for change in house.queue()] == ["landed"] * 2, "both to land")
        assert first.read_text().split() == ["README.md", "a.txt"]
        assert second.read_text().split() == ["README.md", "a.txt", "b.txt"]
        assert house.agent(late)["runs"][0]["evidence"][-1] == "clean tree"

    def test_checks_do_not_see_the_daemons_secrets(self) -> None:
        """Only a short list of variables reaches a check, and those that the settings name."""
        with stage(
            checks='env > "$SEEN"', settings='environment = ["SEEN"]\n', CANARY_TOKEN="hush", SEEN="/dev/null"
        ) as house:
            seen = house.flag("seen")
            house.environment["SEEN"] = str(seen)
            house.land("Add b", adds("b.txt"))
            variables = dict(line.split("=", 1) for line in seen.read_text().splitlines() if "=" in line)
            assert "hush" not in seen.read_text()
            assert not [variable for variable in variables if variable.startswith("WINDLASS_")]
            assert {"PATH", "HOME", "SEEN", "CI"} <= variables.keys()

    def test_a_check_that_takes_too_long_is_ended_with_all_it_started(self) -> None:
        """The author is told of the time limit, and nothing of the check is left."""
        with stage(
            checks="[ ! -e b.txt ] || { setsid sleep 4711 & sleep 4712; }",
            settings="timeout_seconds = 0.3\n[limits]\nreturns = 0\n",
        ) as house:
            told = house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
            assert "timed out after 0.3 s" in told.err
            assert not [inhabitant for inhabitant in inhabitants(house.folder).values() if "sleep 471" in inhabitant]

    def test_two_agents_land_one_after_the_other(self, house: Stage) -> None:
        """Both changes are in main, each by a merge of its own, the second on top of the first."""
        go = house.flag("go")
        for name in ("a", "b"):
            house.work(f"Add {name}", lines(adds(f"{name}.txt"), house.waits_for(go)))
        go.touch()
        until(lambda: [change["state"] for change in house.queue()] == ["landed"] * 2, "both to land")
        assert sorted(house.git("ls-files").split()) == ["README.md", "a.txt", "b.txt"]
        one, two = (house.ask(f"/changes/{each}/receipt") for each in (house.change(1), house.change(2)))
        assert {one["before"] == two["after"], two["before"] == one["after"]} == {True, False}
        assert house.git("status", "--porcelain") == ""


class TestUndo:
    def test_takes_a_change_back_through_the_gate(self, house: Stage) -> None:
        """The undoing is a change of its own with its own proof; what landed in between stays."""
        house.land("Add b", adds("b.txt"))
        house.land("Add c", adds("c.txt"))
        told = house.wl("undo", house.change(1), "--wait")
        assert f"{house.change(3)} takes {house.change(1)} back" in told.out
        assert house.git("ls-files").split() == ["README.md", "c.txt"]
        assert not (house.repo / "b.txt").exists()
        assert [each["passed"] for each in house.ask(f"/changes/{house.change(3)}/receipt")["checks"]] == [True]
        assert f"already undoes {house.change(1)}" in house.wl("undo", house.change(1), code=4).err

    def test_of_an_undoing_brings_the_change_back(self, house: Stage) -> None:
        """What was taken back can be had again."""
        house.land("Add b", adds("b.txt"))
        house.wl("undo", house.change(1), "--wait")
        house.wl("undo", house.change(2), "--wait")
        assert (house.repo / "b.txt").read_text() == "new\n"

    def test_that_breaks_the_checks_does_not_land(self) -> None:
        """Main stays, and the person is told what failed."""
        with stage(checks="test -e b.txt") as house:
            house.land("Add b", adds("b.txt"))
            before = house.git("rev-parse", "main")
            told = house.wl("undo", "c1", "--wait", code=1)
            assert "was not taken back" in told.err
            assert house.git("rev-parse", "main") == before

    def test_of_what_has_not_landed_is_a_conflict(self, house: Stage) -> None:
        """There is nothing to take back, and a change that does not exist is not found."""
        (house.repo / "b.txt").write_text("mine\n")
        house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
        assert "has not landed" in house.wl("undo", house.change(1), code=4).err
        assert "has not landed" in house.wl("receipt", house.change(1), code=4).err
        assert "no change c999" in house.wl("undo", "c999", code=3).err
