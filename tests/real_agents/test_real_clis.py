"""The real Claude Code and Codex, driven by a scripted model on an island: what providers rely on, seen with our eyes.

No Windlass is in here. When a new version of a CLI behaves in another way, these tests say so first.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from island import Island
from real_clis import Cli, ended, eventually, written_down

from model_server.script import Call, Fault, Step, Tool, Usage, fail, say, shell, write
from model_server.server import ModelServer

pytestmark = pytest.mark.agents


@pytest.fixture(params=["claude", "codex"])
def cli(request: pytest.FixtureRequest, place: Island, models: ModelServer, own_home: Path) -> Cli:
    """A CLI that has never been run before; its prompts name the scenario."""
    return Cli(request.param, place, own_home, models.url())


@pytest.fixture
def claude(place: Island, models: ModelServer, own_home: Path) -> Cli:
    return Cli("claude", place, own_home, models.url())


@pytest.fixture
def codex(place: Island, models: ModelServer, own_home: Path) -> Cli:
    return Cli("codex", place, own_home, models.url())


class TestWork:
    def test_it_works_with_its_own_tools(self, cli: Cli, models: ModelServer) -> None:
        """It runs commands, writes files, and tells the model what came of them."""
        models.scenarios["work"] = [
            shell("echo from the shell | tee shell.txt", text="I begin.", think="First the shell."),
            write("notes/written.txt", "one\ntwo\n"),
            say("All is done."),
        ]
        ran = cli.run("Please do it (scenario:work).")
        assert (ran.code, ran.words) == (0, "All is done.")
        assert (cli.project / "shell.txt").read_text() == "from the shell\n"
        assert (cli.project / "notes/written.txt").read_text() == "one\ntwo\n"
        last = models.requests("work")[-1].asked
        assert (last.turn, last.folder, last.key) == (2, str(cli.project), "sk-scripted")
        assert "from the shell" in last.results[0]
        assert "written.txt" in last.results[1]

    def test_calls_can_come_together(self, codex: Cli, models: ModelServer) -> None:
        """Several calls in one turn are one turn."""
        calls = tuple(Call(tool=Tool.SHELL, command=f"echo {each} > {each}") for each in ("one", "two"))
        models.scenarios["both"] = [Step(calls=calls), say("Both.")]
        assert codex.run("Go (scenario:both).").words == "Both."
        assert [(codex.project / each).read_text() for each in ("one", "two")] == ["one\n", "two\n"]
        assert [request.asked.turn for request in models.requests("both")] == [0, 1]

    def test_a_conversation_is_resumed(self, cli: Cli, models: ModelServer) -> None:
        """The second process goes on with the same conversation, and its model remembers the first one's words."""
        models.scenarios["talk"] = [say("Which colour?"), shell("echo blue > colour"), say("It is blue.")]
        first = cli.run("Choose (scenario:talk).")
        second = cli.run("Blue, please.", resume=first.session)
        assert (second.code, second.words, second.session) == (0, "It is blue.", first.session)
        last = models.requests("talk")[-1].asked
        assert [prompt for prompt in last.prompts if "Choose" in prompt or "Blue" in prompt][-2:] == [
            "Choose (scenario:talk).",
            "Blue, please.",
        ]
        assert {request.asked.conversation for request in models.requests("talk")} == {first.session}


class TestTools:
    """The flags by which a workflow's `tools` are given."""

    def test_claude_offers_only_those(self, claude: Cli, models: ModelServer) -> None:
        """The model is not even told of the others."""
        models.scenarios["few"] = [say("Done.")]
        replace(claude, flags=("--tools", "Read,Grep,Glob")).run("Go (scenario:few).")
        replace(claude, flags=("--tools", "Read,Bash")).run("Go (scenario:few).")
        few, other = (sorted(request.asked.tools) for request in models.requests("few"))
        assert (few, other) == (["Glob", "Grep", "Read"], ["Bash", "Read"])

    @pytest.mark.parametrize(("mode", "has"), [("live", True), ("disabled", False)])
    def test_codex_searches_the_web_or_not(self, codex: Cli, models: ModelServer, mode: str, *, has: bool) -> None:
        """By its own setting."""
        models.scenarios["web"] = [say("Done.")]
        ran = replace(codex, flags=("-c", f'web_search="{mode}"')).run("Go (scenario:web).")
        assert ran.code == 0
        assert any("web_search" in tool for tool in models.requests("web")[0].asked.tools) is has


class TestUsage:
    DEAR = Usage(input=1000, output=50, cached=400)

    def test_one_counts_each_run(self, claude: Cli, models: ModelServer) -> None:
        """Claude Code adds up one run; what was cached is told apart, and it knows a price."""
        models.scenarios["dear"] = [shell("true", usage=self.DEAR), say("Done.", usage=self.DEAR)]
        told = claude.run("Go (scenario:dear).").last
        usage = told["usage"]
        assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (1200, 800, 100)
        assert told["total_cost_usd"] > 0

    def test_one_counts_on_from_run_to_run(self, codex: Cli, models: ModelServer) -> None:
        """Codex adds up the whole conversation, also what earlier runs used."""
        models.scenarios["dear"] = [say("One.", usage=self.DEAR), say("Two.", usage=self.DEAR)]
        first = codex.run("Go (scenario:dear).")
        second = codex.run("Again.", resume=first.session)
        inputs = [each.last["usage"]["input_tokens"] for each in (first, second)]
        assert inputs == [1000, 2000]
        assert first.last["usage"]["cached_input_tokens"] == 400


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            (Fault.AUTH, "Invalid API key"),
            (Fault.RATE, "Request rejected (429)"),
            (Fault.BILLING, "Credit balance is too low"),
            (Fault.OVERLOADED, "529 Overloaded"),
            (Fault.CONTEXT, "Prompt is too long"),
            (Fault.SERVER, "Internal server error"),
        ],
    )
    def test_claude_says_what_was_wrong(self, claude: Cli, models: ModelServer, fault: Fault, words: str) -> None:
        """The last line has the error, although its subtype calls it a success."""
        models.scenarios["bad"] = [fail(fault)]
        ran = claude.run("Go (scenario:bad).")
        assert ran.code == 1
        assert (ran.last["is_error"], ran.last["subtype"]) == (True, "success")
        assert words in ran.words

    def test_claude_says_when_a_plan_is_used_up(self, claude: Cli, models: ModelServer) -> None:
        """With a subscription, a used-up plan is told at once, with the second at which it is there again."""
        models.scenarios["bad"] = [fail(Fault.QUOTA, resets_in=7200)]
        claude.more["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat-scripted"
        ran = claude.run("Go (scenario:bad).")
        told = next(line["rate_limit_info"] for line in ran.lines if line["type"] == "rate_limit_event")
        [asked] = models.requests("bad")
        assert (told["status"], ran.code) == ("rejected", 1)
        assert abs(told["resetsAt"] - asked.at - 7200) < 5
        assert asked.asked.key == "sk-ant-oat-scripted"

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            (Fault.AUTH, "401 Unauthorized"),
            (Fault.RATE, "429 Too Many Requests"),
            (Fault.QUOTA, "hit your usage limit"),
            (Fault.BILLING, "Quota exceeded"),
            (Fault.OVERLOADED, "at capacity"),
            (Fault.CONTEXT, "context_length_exceeded"),
            (Fault.SERVER, "experiencing high demand"),
        ],
    )
    def test_codex_says_what_was_wrong(self, codex: Cli, models: ModelServer, fault: Fault, words: str) -> None:
        """The turn fails with the error in its last line."""
        models.scenarios["bad"] = [fail(fault)]
        ran = codex.run("Go (scenario:bad).")
        assert (ran.code, ran.last["type"]) == (1, "turn.failed")
        assert words in ran.words

    @pytest.mark.parametrize("step", [fail(Fault.OVERLOADED, times=1), Step(drop=True, midway=True, times=1)])
    def test_trouble_that_passes_is_survived(self, cli: Cli, models: ModelServer, step: Step) -> None:
        """It tries again by itself, with the same request, and gets its answer."""
        models.scenarios["shaky"] = [replace(step, text="Well again.")]
        cli.more["CLAUDE_CODE_MAX_RETRIES"] = "1"
        ran = cli.run("Go (scenario:shaky).")
        assert (ran.code, ran.words) == (0, "Well again.")
        assert [request.answer for request in models.requests("shaky")] == [step.trouble, "answer"]


class TestEnding:
    def test_a_silent_model_is_waited_for_until_it_is_ended(self, cli: Cli, models: ModelServer) -> None:
        """While the model says nothing the CLI stays; SIGTERM ends it at once, and its request with it."""
        models.scenarios["slow"] = [Step(hang=True, midway=True)]
        with cli.running("Go (scenario:slow).") as process:
            assert models.wait_for(lambda: models.requests("slow"))
            process.send_signal(signal.SIGTERM)
            ran = ended(process)
        assert ran.code == (143 if cli.name == "claude" else -signal.SIGTERM)
        assert models.wait_for(lambda: models.requests("slow")[0].left)

    def test_a_killed_conversation_is_resumed(self, cli: Cli, models: ModelServer) -> None:
        """After SIGKILL in the middle of a command the conversation is still there, up to that command at least."""
        waiting = "test -e begun || { touch begun; while [ -e begun -a ! -e over ]; do sleep 0.05; done; }"
        models.scenarios["kill"] = [shell("echo one"), shell(waiting), say("Awake again."), say("And more.")]
        with cli.running("Go (scenario:kill).") as process:
            eventually(cli.project / "begun")
            if cli.name == "claude":  # it writes its conversation down a moment after it happened
                written_down("tool_result", cli.folder / "claude" / "projects")
            os.killpg(process.pid, signal.SIGKILL)
            killed = ended(process)
            (cli.project / "over").touch()  # a command may outlive its CLI
        ran = cli.run("Go on.", resume=killed.session)
        assert (ran.code, ran.words) == (0, "Awake again.")
        assert "one" in models.requests("kill")[-1].asked.results[0]
        forgotten = cli.name == "claude"  # the command that was cut off; the other one is told that it was aborted
        assert [request.asked.turn for request in models.requests("kill")] == ([0, 1, 1, 2] if forgotten else [0, 1, 2])
