"""Workflows as people run them: one file, one command, a real daemon, real runs and real git."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from e2e_stage import WITHIN, Stage, stage

from patience import until

REVIEW = """
name: code-review
context:
agents:
  coordinator:
    command: |
      windlass context peek | grep -q "All checked" && exit 0
      windlass context send "@reviewer please look at the diff."
  reviewer:
    command: |
      windlass context document append "1. auth is missing"
      windlass context send "@coder auth is missing."
  coder:
    command: |
      echo auth > auth.txt && git add -A && git commit -q -m "Add auth"
      windlass context send "@coordinator All checked and fixed."
setup:
  - shell: echo "${{ params.title }} by @coder"
    as: pr_info
params:
  title: {default: A new PR}
kickoff: |
  ${{ pr_info }}

  @coordinator please orchestrate the review.
  - Use @reviewer for code review
  - Use @coder for any fixes needed
"""
ONE = "agents:\n  helper: {{command: {0!r}}}\nkickoff: '@helper go'\n"


@pytest.fixture(scope="module")
def house() -> Iterator[Stage]:
    with stage(settings="[daemon]\nstop_grace_seconds = 0.5\n", WINDLASS_SANDBOX="off") as made:
        made.wl("init", "--checks", "true")
        yield made


def write(house: Stage, name: str, text: str) -> str:
    (house.repo / name).write_text(text)
    return name


class TestRun:
    def test_three_agents_work_together_and_what_they_made_lands(self, house: Stage) -> None:
        """As the source document has it: the coordinator is called, calls, and is called again."""
        told = house.wl("run", write(house, "review.yaml", REVIEW), "--instance", "pr-1", "--", "--title", "Login")
        said = [line.split("  ")[0] for line in told.out.splitlines() if "@pr-1  " in line or line.startswith("human")]
        assert said[:4] == ["human", "coordinator@pr-1", "reviewer@pr-1", "coder@pr-1"]
        assert "Login by @coder" in told.out
        assert "landed" in told.out
        assert house.git("show", "main:auth.txt") == "auth"
        assert "auth is missing" in house.wl("context", "document", "read", "--instance", "pr-1").out

    def test_json_is_one_answer_at_the_end(self, house: Stage) -> None:
        """With all that a program needs."""
        value = house.wl("run", write(house, "one.yaml", ONE.format("true")), "--instance", "js", "--json").value
        assert (value["instance"], value["ended"], value["failed"], value["changes"]) == ("js", True, [], [])

    def test_an_agent_that_fails_is_named_and_the_exit_code_says_so(self, house: Stage) -> None:
        """After the retries that it has."""
        file = write(house, "bad.yaml", ONE.format("echo oh no; exit 3"))
        told = house.wl("run", file, "--instance", "bad", code=1)
        assert "helper@bad: exit code 3" in told.err

    def test_setup_that_fails_ends_it_before_anyone_begins(self, house: Stage) -> None:
        """With its exit code and its last lines."""
        text = "setup:\n- shell: 'echo one; echo two >&2; exit 9'\n" + ONE.format("true")
        told = house.wl("run", write(house, "setup.yaml", text), "--instance", "none", code=1)
        assert "exit code 9" in told.err and "one" in told.err and "two" in told.err
        assert "none" not in house.wl("list", "--all", "--json").out

    def test_setup_is_not_run_in_vain(self, house: Stage) -> None:
        """What stands in the way of its agents is said before."""
        ran = house.flag("ran")
        text = f"setup:\n- shell: touch '{ran}'\n" + ONE.format("true")
        file = write(house, "vain.yaml", text)
        assert "server is reserved" in house.wl("run", file, "--instance", "server", code=2).err
        unknown = write(house, "unknown.yaml", text.replace("command:", "role: Helps, provider:"))
        assert "no provider" in house.wl("run", unknown, "--instance", "vain", code=None).err
        assert not ran.exists()

    def test_what_setup_prints_is_shown_while_it_runs(self, house: Stage) -> None:
        """Except what is captured, which --verbose shows, too; JSON is left alone."""
        text = "setup:\n- shell: 'echo plain; echo odd >&2'\n- {shell: echo caught, as: it}\n" + ONE.format("true")
        file = write(house, "live.yaml", text)
        told = house.wl("run", file, "--instance", "live")
        assert told.err.splitlines()[:4] == ["$ echo plain; echo odd >&2", "plain", "odd", "$ echo caught"]
        assert "\ncaught\n" in house.wl("run", file, "--instance", "live", "--verbose").err
        assert "plain" not in house.wl("run", file, "--instance", "live", "--json").err

    def test_output_of_any_size_is_kept(self, house: Stage) -> None:
        """The kickoff has its beginning, a document all of it; what no document holds is cut in its middle."""
        text = "context:\nsetup:\n- {shell: seq 1 40000, as: numbers}\n" + ONE.replace(
            "go", "${{{{ numbers }}}}"
        ).format("true")
        house.wl("run", write(house, "large.yaml", text), "--instance", "large")
        kept = house.wl("context", "document", "read", "--name", "setup-numbers", "--instance", "large").out
        assert kept.splitlines() == [str(each) for each in range(1, 40001)]
        [said] = house.wl("peek", "--channel", "@large", "--json").value[:1]
        assert "all of them are in the document setup-numbers)" in said["message"] and len(said["message"]) < 101_000
        text = text.replace("seq 1 40000", "yes | head -c 9000000; echo end")
        told = house.wl("run", write(house, "huge.yaml", text), "--instance", "huge")
        assert "numbers has 9,000,004 bytes: 5,000,004 in the middle are left out." in told.err
        kept = house.wl("context", "document", "read", "--name", "setup-numbers", "--instance", "huge").out
        assert kept.startswith("y\n") and kept.rstrip().endswith("end") and "5000004 bytes left out" in kept

    def test_a_value_that_no_command_can_be_given_is_said_so(self, house: Stage) -> None:
        """Before it is run."""
        text = "setup:\n- {shell: seq 1 40000, as: numbers}\n- shell: echo ${{ numbers }}\n" + ONE.format("true")
        told = house.wl("run", write(house, "long.yaml", text), "--instance", "none", code=2)
        assert "numbers is too long for a command of setup: echo" in told.err

    def test_what_setup_leaves_running_is_not_waited_for(self, house: Stage) -> None:
        """A server may stay."""
        flag = house.flag("over")
        text = f"setup:\n- shell: |\n    ({house.waits_for(flag)}) & echo up\n" + ONE.format("true")
        house.wl("run", write(house, "server.yaml", text), "--instance", "serves")
        flag.touch()

    def test_a_setup_that_hangs_is_ended(self, house: Stage) -> None:
        """With all that it started."""
        text = "setup:\n- {shell: sleep 1000, timeout: 1s}\n" + ONE.format("true")
        told = house.wl("run", write(house, "hang.yaml", text), "--instance", "none", code=7)
        assert "took longer than 1 s" in told.err

    def test_a_file_that_is_wrong_says_all_of_it(self, house: Stage) -> None:
        """By line and column, and nothing is started."""
        text = "agents:\n  helper: {modle: x}\nkickof: go\n"
        told = house.wl("run", write(house, "wrong.yaml", text), code=2)
        assert "wrong.yaml:2:12" in told.err and "wrong.yaml:3:1" in told.err and "Did you mean model?" in told.err

    def test_time_that_is_over_stops_it(self, house: Stage) -> None:
        """With an exit code of its own, and no process is left."""
        file = write(house, "long.yaml", ONE.format("sleep 1000"))
        told = house.wl("run", file, "--instance", "long", "--timeout", "3s", code=7)
        assert "was not done in time, and was stopped" in told.err
        until(lambda: house.agent("helper@long")["status"] == "stopped", "its end")

    def test_an_end_from_elsewhere_is_no_success(self, house: Stage) -> None:
        """Time that its file gives it, and a stop in another terminal: the exit code says so, with the reason."""
        file = write(house, "hour.yaml", ONE.format("sleep 1000") + "limits: {timeout: 2s}\n")
        told = house.wl("run", file, "--instance", "hour", code=7)
        assert "its time was over (limits.timeout)" in told.err
        began = house.begin("run", write(house, "halt.yaml", ONE.format("sleep 1000")), "--instance", "halt")
        until(lambda: "helper@halt" in house.wl("list", "--all").out, "its agent")
        house.wl("stop", "@halt")
        assert began.wait(WITHIN) == 1
        assert b"@halt was stopped by hand." in began.communicate()[1]

    def test_what_was_left_uncommitted_is_named(self, house: Stage) -> None:
        """It was reminded of once; where it is kept is told."""
        told = house.wl("run", write(house, "left.yaml", ONE.format("echo x > draft.txt")), "--instance", "left")
        assert "helper@left  left draft.txt uncommitted in its worktree" in told.out

    def test_two_presses_of_ctrl_c_drain_and_stop(self, house: Stage) -> None:
        """The first lets those at work end."""
        file = write(house, "press.yaml", ONE.format("sleep 1000"))
        words = (*house.program, "run", file, "--instance", "press")
        began = subprocess.Popen(
            words, cwd=house.repo, env=house.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until(lambda: "helper@press" in house.wl("list", "--all").out, "its agent")
        house.pid("helper@press")
        began.send_signal(signal.SIGINT)
        assert began.stderr is not None
        assert "press Ctrl-C again" in began.stderr.readline() + began.stderr.readline()
        began.send_signal(signal.SIGINT)
        assert began.wait(WITHIN) == 130
        until(lambda: house.agent("helper@press")["status"] == "stopped", "its end")
        began.communicate()

    def test_one_press_lets_those_at_work_end(self, house: Stage) -> None:
        """And it was interrupted all the same."""
        go = house.flag("go-on")
        file = write(house, "once.yaml", ONE.format(house.waits_for(go)))
        began = house.begin("run", file, "--instance", "once")
        until(lambda: "helper@once" in house.wl("list", "--all").out, "its agent")
        house.pid("helper@once")
        began.send_signal(signal.SIGINT)
        assert began.stderr is not None
        assert b"press Ctrl-C again" in began.stderr.readline() + began.stderr.readline()
        go.touch()
        assert began.wait(WITHIN) == 130
        assert house.agent("helper@once")["status"] == "completed"


class TestStart:
    def test_it_stays_and_can_be_spoken_to_and_survives_its_daemon(self, house: Stage) -> None:
        """Until it is stopped; what was said stays."""
        file = write(house, "stay.yaml", "context:\n" + ONE.format('windlass context send "I am here."'))
        begun = house.wl("start", file, "--instance", "stay", "--background", "--json").value
        assert begun["channel"] == "@stay"
        until(lambda: len(spoken(house, "stay")) == 2, "its first word")
        house.wl("start", file, "--instance", "stay", "--background", code=4)
        os.kill(house.daemon, signal.SIGKILL)
        house.wl("send", "Again.", "--to", "helper@stay")
        until(lambda: len(spoken(house, "stay")) == 4, "its second word")
        assert "stay.yaml" in house.wl("list").out
        assert "windlass stop @stay" in house.wl("stop").out
        told = house.wl("stop", "@stay").out
        assert ".windlass/context/stay/channel.md" in told and "windlass peek --channel @stay" in told
        assert len(spoken(house, "stay")) == 4
        assert house.wl("stop", "--json").value["instances"] == []

    def test_twenty_instances_at_once_all_finish(self, house: Stage) -> None:
        """And none sees another."""
        file = write(house, "many.yaml", "context:\n" + ONE.format('windlass context send "$WINDLASS_AGENT"'))
        names = [f"n{each}" for each in range(20)]
        for name in names:
            house.wl("start", file, "--instance", name, "--background")
        until(lambda: all(len(spoken(house, name)) == 2 for name in names), "all of them", within=100)
        assert [spoken(house, name)[1] for name in names] == [f"helper@{name}" for name in names]
        house.wl("stop", *(f"@{name}" for name in names))


def spoken(house: Stage, instance: str) -> list[str]:
    """What was said in an instance."""
    told = house.wl("peek", "--channel", f"@{instance}", "--json")
    return [load["message"] for load in json.loads(told.out)]
