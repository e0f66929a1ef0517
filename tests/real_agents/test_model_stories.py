"""Windlass with models and no coding CLI: the real process of ours, from a piece of work to main, by both protocols.

All agents are given their work at once, and work side by side; each test looks at its own.
"""

from __future__ import annotations

import os
import signal as signals
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from crew import SANDBOX, Crew, crew, descendants, lands, signal
from process_table import lives
from real_clis import do_without

from model_server.script import Fault, Step, ours, say, shell, write

MODELS = {"messages": "anthropic/claude-sonnet-4-5", "responses": "openai/gpt-5.5"}
KEYS = {"messages": "sk-ant-0123456789-scripted", "responses": "sk-oai-0123456789-scripted"}
pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("models"), pytest.mark.parametrize("api", MODELS)]

ASK = signal("questions", questions=[{"id": "q1", "question": "Which colour?"}])
LOOKS = [write("written.txt", "new\n"), ours("complete", result="I have looked."), say("Done.")]


def hangs_once(name: str) -> list[Step]:
    first, *others = lands(name)
    return [shell("echo begun"), replace(first, hang=True, midway=True, times=1), *others]


@pytest.fixture(scope="module")
def team() -> Iterator[Crew]:
    """Every agent of this file, at work."""
    variables = {"ANTHROPIC_API_KEY": KEYS["messages"], "OPENAI_API_KEY": KEYS["responses"]}
    with crew((), **variables) as made:
        made.house.environment["OPENAI_BASE_URL"] = f"{made.models.url()}/v1"
        for api in MODELS:
            give(made, api, "kept", [shell("env; cat /proc/$PPID/environ"), *lands(f"kept-{api}.txt")])
            give(made, api, "asks", [ASK, say("I wait."), *lands(f"asks-{api}.txt")], "--sandbox", "off")
            give(made, api, "reads", LOOKS, "--permissions", "read", "--sandbox", "off")
            give(made, api, "auth", [Step(fault=Fault.AUTH)])
            give(made, api, "term", hangs_once(f"term-{api}.txt"))
        assert made.models.wait_for(lambda: all(made.models.requests(f"kept-{api}")[4:] for api in MODELS), within=300)
        yield made


def give(team: Crew, api: str, story: str, steps: list[Step], *options: str) -> None:
    """No provider is named: the model says whose it is."""
    scenario = f"{story}-{api}"
    team.models.scenarios[scenario] = steps
    words = ("work", f"Tell a story (scenario:{scenario})", "--model", MODELS[api], "--json", *options)
    team.names[scenario] = str(team.house.wl(*words).value["agent"])


def name(team: Crew, api: str, story: str) -> str:
    return team.names[f"{story}-{api}"]


class TestLanding:
    def test_it_edits_commits_and_lands(self, team: Crew, api: str) -> None:
        """In a sandbox, with what it used, what that cost, and our tools from the first request on."""
        if not SANDBOX:
            do_without("there is no bwrap")
        page = team.landed(name(team, api, "kept"))
        [run] = page["runs"]
        assert (run["outcome"], run["trouble"], page["provider"]) == ("done", None, "model")
        assert team.house.git("show", f"main:kept-{api}.txt") == "new"
        assert (page["sandbox"], page["model"]) == ("bubblewrap", MODELS[api])
        assert 0.001 < run["usage"]["cost_usd"] < 0.1
        tools = team.models.requests(f"kept-{api}")[0].asked.tools
        assert {"channel_send", "inbox_read", "complete", "shell", "edit_file", "search_files"} <= tools

    def test_only_its_own_key_and_nowhere_to_be_read(self, team: Crew, api: str) -> None:
        """The process has its vendor's key and no other; nobody who reads what it printed finds it."""
        team.landed(name(team, api, "kept"))
        asked = team.models.requests(f"kept-{api}")
        assert {each.asked.key for each in asked} == {KEYS[api]}
        other = next(key for other, key in KEYS.items() if other != api)
        assert other not in "\n".join(asked[-1].asked.results)
        log = team.house.wl("logs", name(team, api, "kept")).out
        assert "PATH=" in log
        assert not [key for key in KEYS.values() if key in log]


class TestGoingOn:
    def test_an_answer_resumes_its_session(self, team: Crew, api: str) -> None:
        """What was said before is in the conversation, and it lands."""
        asks = name(team, api, "asks")
        first = team.ended(asks)
        team.house.wl("answer", asks, "q1=Ultramarine, please")
        second = team.landed(asks)["runs"][1]
        assert (second["outcome"], second["session"]) == ("done", first["session"])
        prompts = team.models.requests(f"asks-{api}")[-1].asked.prompts
        assert "Tell a story" in prompts[0]
        assert "Ultramarine, please" in prompts[-1]

    def test_someone_ends_its_program(self, team: Crew, api: str) -> None:
        """It has crashed, nothing of it is left, and the same session goes on where it was; it lands."""
        term = name(team, api, "term")
        assert team.models.wait_for(lambda: team.models.requests(f"term-{api}")[1:])
        family = descendants(team.house.pid(term))
        os.kill(next(pid for pid, words in family.items() if _is_program(words)), signals.SIGTERM)
        first = team.ended(term)
        assert (first["outcome"], first["trouble"]) == ("crashed", None)
        assert not any(lives(each) for each in family)
        second = team.landed(term)["runs"][1]
        assert (second["cause"], second["outcome"], second["session"]) == ("reminder", "done", first["session"])
        assert team.models.requests(f"term-{api}")[-1].asked.results[0].strip() == "begun"


class TestRefused:
    def test_who_may_only_read_writes_nothing(self, team: Crew, api: str) -> None:
        """Without a sandbox: it has no shell, and its write is refused."""
        run = team.ended(name(team, api, "reads"))
        assert run["outcome"] == "done"
        first = team.models.requests(f"reads-{api}")
        assert not {"shell", "edit_file"} & first[0].asked.tools
        assert "You may only read" in first[-1].asked.results[0]
        worktree = team.page(name(team, api, "reads"))["worktree"]
        assert not os.path.exists(f"{worktree}/written.txt")  # noqa: PTH110 - a path as a person was shown it

    def test_a_refused_key_is_for_a_person(self, team: Crew, api: str) -> None:
        """It waits, with a question."""
        auth = name(team, api, "auth")
        run = team.ended(auth)
        assert (run["outcome"], run["trouble"]["kind"]) == ("failed", "auth")
        assert team.page(auth)["status"] == "waiting"

    def test_without_a_key_nothing_starts(self, team: Crew, api: str) -> None:
        """The refusal names the variable, and there is no agent."""
        before: Any = len(team.house.wl("list", "--all", "--json").value)
        told = team.house.wl("work", "Anything", "--model", "deepseek/deepseek-chat", code=6)
        assert "There is no key for deepseek/deepseek-chat." in told.err
        assert "export DEEPSEEK_API_KEY=" in told.err
        assert len(team.house.wl("list", "--all", "--json").value) == before


def _is_program(words: list[str]) -> bool:
    """Whether this is the process itself, and not what keeps it in its place."""
    return "bwrap" not in words[0] and "windlass.model" in words[:5]
