"""The workflows of the source document with real programs: Claude Code, Codex, and models that we ask ourselves.

Each has both files as they are printed; who runs `model: anthropic/…` is a setting. At last, all three work together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from crew import Crew, crew
from printed import DIFF, MODEL, PULL_REQUEST, has_pull_request, printed

import patience
from model_server.script import Step, ours, say, shell

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("workflows")]

KINDS = ("claude", "codex", "model")
TOGETHER = {"coordinator": "claude", "reviewer": "codex"}
"""The coder is a model without a coding CLI."""
WITHIN = patience.seconds(300)
SLOW = 8
"""Seconds; it waits for five."""
ASKS = "@reviewer please look at login.py"
ISSUE = "@coder found auth validation issue in line 2"
FIXED = "Fixed, @reviewer please verify"
VERIFIED = "@coordinator the fix is right"
NOTES = "# Review Notes\n\n1. Auth validation missing (line 2)\n"
DECISIONS = "\n## Decisions\n- Check every user\n"


def script(name: str, verified: str) -> dict[str, list[Step]]:
    """What the models of a workflow do; nobody says that it is done, because nobody has to."""
    return {
        f"{name}-coordinator": [
            ours("channel_send", message=ASKS),
            say("I wait."),
            ours("document_append", text=DECISIONS),
            say("All is done."),
        ],
        f"{name}-reviewer": [
            shell("cat login.py"),
            ours("document_write", text=NOTES),
            ours("channel_send", message=ISSUE),
            say("I wait."),
            shell(f"cat {name}.txt"),
            ours("channel_send", message=verified),
            say("I am done."),
        ],
        f"{name}-coder": [
            ours("document_read"),
            shell(f"echo checked > {name}.txt && git add -A && git commit -q -m 'Check the user'"),
            ours("channel_send", message=FIXED),
            say("I am done."),
        ],
    }


@dataclass(frozen=True, slots=True)
class Team:
    """A crew that has run workflows, and what `windlass run` printed."""

    kind: str
    crew: Crew
    told: dict[str, str] = field(default_factory=dict)

    def run(self, *names: str, **providers: str) -> None:
        """Run them beside each other, each as an instance of its own name."""
        begun = {}
        for name in names:
            begun[name] = self.crew.house.begin("run", printed(self.crew.house, name, **providers), "--instance", name)
        for name, process in begun.items():
            out, err = process.communicate(timeout=WITHIN)
            assert process.returncode == 0, (out.decode(), err.decode())
            self.told[name] = out.decode()

    def said(self, name: str) -> list[tuple[str, str]]:
        items = self.crew.house.wl("peek", "--channel", f"@{name}", "--json").value
        return [(item["from"].partition("@")[0], item["message"]) for item in items if item["from"] != "system"]

    def document(self, name: str) -> str:
        return self.crew.house.wl("context", "document", "read", "--instance", name).out

    def results(self, scenario: str) -> Sequence[str]:
        """What the tools returned to a model, in order."""
        return self.crew.models.requests(scenario)[-1].asked.results


@pytest.fixture(scope="module", params=KINDS)
def team(request: pytest.FixtureRequest) -> Iterator[Team]:
    """One kind of program, after both workflows."""
    clis = () if request.param == "model" else (request.param,)
    with crew(clis, ANTHROPIC_API_KEY="sk-scripted") as made:
        has_pull_request(made.house)
        if clis:
            prefer(made, request.param)
        made.models.scenarios |= script("review", "It is right.") | script("collaboration", VERIFIED)
        team = Team(request.param, made)
        team.run("review", "collaboration")
        yield team


def prefer(made: Crew, cli: str) -> None:
    """Let a coding CLI run the models that the files name."""
    with (made.house.state / "config.toml").open("a") as file:
        file.write(f'[models.anthropic]\nprefer_cli = "{cli}"\n')


@pytest.fixture(scope="module")
def together() -> Iterator[Team]:
    """Claude Code, Codex and a model of our own, after the second workflow."""
    with crew(ANTHROPIC_API_KEY="sk-scripted") as made:
        has_pull_request(made.house)
        made.models.scenarios |= script("collaboration", VERIFIED)
        team = Team("together", made)
        team.run("collaboration", **TOGETHER)
        yield team


class TestOfOneKind:
    def test_reviewer_and_coder(self, team: Team) -> None:
        """The reviewer finds, the coder mends, the reviewer sees what the coder has committed, and it lands."""
        assert [name for name, _ in team.said("review")] == ["human", "reviewer", "coder", "reviewer"]
        assert DIFF in team.said("review")[0][1]
        assert [words for _, words in team.said("review")[1:]] == [ISSUE, FIXED, "It is right."]
        assert team.document("review") == NOTES
        assert team.results("review-reviewer")[3].splitlines()[-1] == "checked"
        assert NOTES.strip().splitlines()[-1] in team.results("review-coder")[0]
        assert team.crew.house.git("show", "main:review.txt") == "checked"

    def test_three_agents_with_a_coordinator(self, team: Team) -> None:
        """Each is called by the one before it, and those who are called again go on in their sessions."""
        assert_collaborated(team)

    def test_the_printed_model_is_asked_by_this_program(self, team: Team) -> None:
        """The file names no provider."""
        page = team.crew.page("coder@review")
        assert page["provider"] == team.kind
        assert {request.asked.model for request in team.crew.models.requests("review-coder")} == {MODEL}

    def test_each_is_told_who_it_is_by_the_file_that_the_workflow_names(self, team: Team) -> None:
        """And gets our tools with the first request."""
        first = team.crew.models.requests("collaboration-coordinator")[0].asked
        assert "You are the coordinator of this team" in "\n".join((first.system, *first.prompts))
        assert {"channel_send", "document_write"} <= {tool.rpartition("__")[2] for tool in first.tools}


class TestTogether:
    def test_the_coders_commit_lands(self, together: Team) -> None:
        """Claude Code coordinates, Codex reviews, a model codes."""
        providers = {each: together.crew.page(f"{each}@collaboration")["provider"] for each in (*TOGETHER, "coder")}
        assert providers == {**TOGETHER, "coder": "model"}
        assert_collaborated(together)


class TestOnABusyMachine:
    def test_the_model_is_asked_when_our_tools_are_there(self) -> None:
        """Also where it takes them longer than Claude Code would wait by itself."""
        with crew(("claude",), ANTHROPIC_API_KEY="sk-scripted") as made:
            has_pull_request(made.house)
            prefer(made, "claude")
            program = made.house.folder / "bin/windlass"
            program.rename(program.with_name("windlass-itself"))
            program.write_text(f'#!/bin/sh\n[ "$1" = mcp ] && sleep {SLOW}\nexec windlass-itself "$@"\n')
            program.chmod(0o755)
            made.models.scenarios["review-reviewer"] = [ours("channel_send", message="It is right."), say("Done.")]
            team = Team("claude", made)
            team.run("review")
            assert team.said("review")[1:] == [("reviewer", "It is right.")]
            assert len(team.crew.page("reviewer@review")["runs"]) == 1


def assert_collaborated(team: Team) -> None:
    (_, kickoff), *talk = team.said("collaboration")
    assert PULL_REQUEST in kickoff
    assert talk == [("coordinator", ASKS), ("reviewer", ISSUE), ("coder", FIXED), ("reviewer", VERIFIED)]
    assert team.document("collaboration") == NOTES + DECISIONS
    assert team.results("collaboration-reviewer")[3].splitlines()[-1] == "checked"
    assert team.crew.house.git("show", "main:collaboration.txt") == "checked"
    assert "  landed  code-review @collaboration" in team.told["collaboration"]
    for agent, runs in {"coordinator": 2, "reviewer": 2, "coder": 1}.items():
        found = team.crew.page(f"{agent}@collaboration")["runs"]
        assert [(each["cause"], each["outcome"]) for each in found] == [("call", "done")] * runs
        assert len({each["session"] for each in found}) == 1
