"""The real Claude Code and the real Codex talk to each other through our tools, which they get by themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from crew import Crew, crew, edits

from model_server.script import Step, ours, say

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("talk")]

AGENT = "---\nname: {0}\nrole: Painter\nprovider: {0}\nmodel: {1}\n---\nPaint.\n"
MODELS = {"claude": "claude-haiku-4-5", "codex": "scripted-model"}
"""Codex puts our tools into each request only for models that it does not know; others have to search for them."""
QUESTION = "@codex Which colour shall it be? (scenario:answers-codex)"
ANSWER = "@claude Ultramarine."
ASKS: list[Step] = [
    ours("agents_list"),
    ours("channel_send", message=QUESTION),
    ours("complete", result="I have asked codex."),
    say("I wait."),
    ours("channel_read"),
    *edits("colour.txt", "ultramarine"),
    ours("complete", result="It is painted."),
    say("I am done."),
]
ANSWERS: list[Step] = [
    ours("inbox_read"),
    ours("channel_read"),
    ours("channel_send", message=ANSWER, **{"from": "claude"}),
    ours("channel_send", message=ANSWER),
    ours("complete", result="I have answered."),
    say("I am done."),
]


@pytest.fixture(scope="module")
def team() -> Iterator[Crew]:
    """Both, after they have talked."""
    with crew(ANTHROPIC_API_KEY="sk-scripted") as made:
        made.house.commit({f".windlass/agents/{item[0]}.md": AGENT.format(*item) for item in MODELS.items()})
        made.models.scenarios["answers-codex"] = ANSWERS
        made.give("claude", "asks", ASKS, "--agent", "claude")
        made.landed("claude")
        yield made


def results(team: Crew, scenario: str) -> list[str]:
    """What the tools returned to a model, in order."""
    return list(team.models.requests(scenario)[-1].asked.results)


def entries(result: str) -> list[Any]:
    return list(json.loads(result[result.index("{") :])["entries"])


class TestTalk:
    def test_a_mention_starts_the_other(self, team: Crew) -> None:
        """It never worked before; its prompt carries the question, and it can read that with our tools."""
        page = team.page("codex")
        assert (page["runs"][0]["cause"], page["runs"][0]["outcome"]) == ("call", "done")
        assert any(QUESTION in prompt for prompt in team.prompts("codex", "answers"))
        heard = entries(results(team, "answers-codex")[1])
        assert ("claude", QUESTION) in [(each["from"], each["message"]) for each in heard]

    def test_it_cannot_speak_as_the_one_who_asked(self, team: Crew) -> None:
        """Its own model tried to."""
        assert "You are codex, and can't speak as claude." in results(team, "answers-codex")[2]

    def test_the_answer_resumes_the_one_who_asked(self, team: Crew) -> None:
        """In the same session; it goes on, and what it makes of the answer lands."""
        first, second, *_ = team.page("claude")["runs"]
        assert first["outcome"] == "done"
        assert second["session"] == first["session"]
        assert any(ANSWER in prompt for prompt in team.prompts("claude", "asks"))
        heard = entries(results(team, "asks-claude")[3])
        assert ("codex", ANSWER) in [(each["from"], each["message"]) for each in heard]
        assert team.house.git("show", "main:colour.txt") == "ultramarine"

    def test_nothing_is_said_twice(self, team: Crew) -> None:
        """One question, one answer."""
        last = entries(results(team, "asks-claude")[3])
        spoken = [each["message"] for each in last if "kind" not in each]
        assert spoken == [QUESTION, ANSWER]

    @pytest.mark.parametrize("scenario", ["asks-claude", "answers-codex"])
    def test_the_first_request_has_every_tool(self, team: Crew, scenario: str) -> None:
        """The model is asked when our tools are there, and not before."""
        tools = team.models.requests(scenario)[0].asked.tools
        assert {f"mcp__windlass__{each}" for each in ("channel_send", "inbox_read", "complete")} <= tools
