"""What goes wrong with the real Claude Code and the real Codex: told apart, with evidence, and the right next step.

All agents of a file are given their work at once, and work side by side; each test looks at its own. The rest after
a busy server is half a minute, so that only its beginning is looked at.
"""

from __future__ import annotations

import os
import signal as signals
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from crew import CLIS, Crew, crew, descendants, lands
from process_table import lives

from model_server.script import Fault, Step, shell

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("troubles"), pytest.mark.parametrize("cli", CLIS)]

SHORT = "[limits]\nsilent_minutes = 0.15\nretries = 3\n"
RESETS_IN = 7200


def first_fails(name: str, fault: Fault) -> list[Step]:
    """The first request is refused, and all goes well from the second one on."""
    first, *others = lands(name)
    return [replace(first, fault=fault, times=1, in_all=True), *others]


def hangs_once(name: str) -> list[Step]:
    """It begins, its model falls silent in the middle of an answer, and the next time it does not."""
    first, *others = lands(name)
    return [shell("echo begun"), replace(first, hang=True, midway=True, times=1), *others]


@pytest.fixture(scope="module")
def team() -> Iterator[Crew]:
    """Every agent of this file, at work; those whose silence is timed have a repository of their own."""
    with crew(CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat-scripted") as made:
        impatient = made.another_repository("impatient", SHORT)
        for cli in CLIS:
            for story in ("auth", "billing", "context"):
                made.give(cli, story, first_fails(f"{story}-{cli}.txt", Fault(story)))
            for story in ("rate", "overloaded"):
                made.give(cli, story, [Step(fault=Fault(story))])
            made.give(cli, "quota", [Step(fault=Fault.QUOTA, resets_in=RESETS_IN)])
            made.give(cli, "silent", hangs_once(f"silent-{cli}.txt"), repo=impatient)
            for story in ("term", "kill"):
                made.give(cli, story, hangs_once(f"{story}-{cli}.txt"))
        yield made


@pytest.fixture(scope="module")
def mended(team: Crew) -> dict[str, Any]:
    """How the agents were found that wait for a person; each has an answer by now."""
    found = {}
    for scenario in (f"{story}-{cli}" for story in ("auth", "billing") for cli in CLIS):
        team.ended(team.names[scenario])
        found[scenario] = team.page(team.names[scenario])
        team.house.wl("answer", team.names[scenario], "It is mended.")
    return found


class TestEndedFromOutside:
    @pytest.mark.parametrize(("story", "sent"), [("term", signals.SIGTERM), ("kill", signals.SIGKILL)])
    def test_someone_ends_its_program(self, team: Crew, cli: str, story: str, sent: signals.Signals) -> None:
        """It has crashed, nothing of it is left, and the same session goes on where it was; it lands."""
        name = team.names[f"{story}-{cli}"]
        assert team.models.wait_for(lambda: team.models.requests(f"{story}-{cli}")[1:])
        family = descendants(team.house.pid(name))
        os.kill(next(pid for pid, words in family.items() if _is_program(cli, words)), sent)
        first = team.ended(name)
        assert (first["outcome"], first["trouble"]) == ("crashed", None)
        assert first["reason"].endswith(", without a signal")
        assert not any(lives(each) for each in family)
        second = team.landed(name)["runs"][1]
        assert (second["cause"], second["outcome"], second["session"]) == ("reminder", "done", first["session"])


class TestForAPerson:
    @pytest.mark.parametrize(("story", "meaning"), [("auth", "not logged in"), ("billing", "no credit left")])
    def test_it_waits_and_goes_on_with_an_answer(
        self, team: Crew, mended: dict[str, Any], cli: str, story: str, meaning: str
    ) -> None:
        """A refused key and an empty account are for a person; after the answer the same session lands."""
        page = mended[f"{story}-{cli}"]
        [run] = page["runs"]
        assert (page["status"], run["outcome"], run["trouble"]["kind"]) == ("waiting", "failed", story)
        assert run["reason"].startswith(f"{meaning}: ")
        assert {f"trouble: {run['reason']}", "exit code 1", "no signal"} <= set(run["evidence"])
        [question] = page["questions"]
        assert question["question"].startswith(f"q1: {meaning}: ")
        second = team.landed(page["name"])["runs"][1]
        assert (second["cause"], second["outcome"], second["session"]) == ("mail", "done", run["session"])
        assert "It is mended." in team.prompts(cli, story)[-1]


class TestForTime:
    @pytest.mark.parametrize(("story", "kind"), [("rate", "throttle"), ("overloaded", "overload")])
    def test_no_room_at_the_server(self, team: Crew, cli: str, story: str, kind: str) -> None:
        """It failed by no fault of its own: it rests, and nobody is asked."""
        name = team.names[f"{story}-{cli}"]
        run = team.ended(name)
        assert (run["outcome"], run["trouble"]["kind"]) == ("failed", kind)
        assert {f"trouble: {run['reason']}", "exit code 1", "no signal"} <= set(run["evidence"])
        page = team.page(name)
        assert page["status"] in ("idle", "running")  # half a minute later it is tried again
        assert (page["questions"], page["change"]) == ([], None)

    def test_a_plan_that_is_used_up(self, team: Crew, cli: str) -> None:
        """It is exhausted until the time that its CLI tells, where it does; nobody is asked."""
        name = team.names[f"quota-{cli}"]
        run = team.ended(name)
        assert (run["outcome"], run["trouble"]["kind"]) == ("exhausted", "quota")
        assert {f"trouble: {run['reason']}", "exit code 1", "no signal"} <= set(run["evidence"])
        page = team.page(name)
        assert (page["status"], page["questions"], page["change"]) == ("waiting", [], None)
        asked_at = team.models.requests(f"quota-{cli}")[-1].at
        if cli == "claude":
            assert run["trouble"]["until"] == pytest.approx(asked_at + RESETS_IN, abs=5)
        else:  # it tells an hour, but no day and no zone
            assert "try again at" in run["reason"]


class TestForAnotherTry:
    def test_a_conversation_that_is_too_long(self, team: Crew, cli: str) -> None:
        """It goes on in a new session, and lands."""
        first, second = team.landed(team.names[f"context-{cli}"])["runs"]
        assert (first["outcome"], first["trouble"]["kind"]) == ("crashed", "context")
        assert f"trouble: {first['reason']}" in first["evidence"]
        assert (second["cause"], second["outcome"]) == ("reminder", "done")
        assert second["session"] and second["session"] != first["session"]
        assert "the conversation became too long" in team.prompts(cli, "context")[-1]

    def test_a_model_that_falls_silent(self, team: Crew, cli: str) -> None:
        """After `limits.silent_minutes` it is ended, as a stall; it goes on in its session, if kept, and lands.

        A CLI that is ended before it has written its session down can't go on in it: then it says so, and begins anew.
        """
        first, *more, last = team.landed(team.names[f"silent-{cli}"])["runs"]
        stalled = [first, *(each for each in more if each["trouble"]["kind"] != "lost")]
        for run in stalled:  # one usually, and more on a machine where a CLI takes as long to begin
            assert (run["outcome"], run["trouble"]["kind"]) == ("crashed", "stall")
            assert run["reason"].startswith("it stalled: no output for 9 s (limits.silent_minutes)")
            assert {f"trouble: {run['reason']}", "no signal"} <= set(run["evidence"])
            assert run["ended_at"] - run["started_at"] >= 9
        hung = [request for request in team.models.requests(f"silent-{cli}") if request.answer == "hang"]
        assert all(each.left for each in hung)
        assert last["outcome"] == "done"
        if len(stalled) == len(more) + 1:  # none was lost
            assert last["session"] == hung[0].asked.conversation


def _is_program(cli: str, words: list[str]) -> bool:
    """Whether this is the CLI itself, as we start it, and not what keeps it in its place."""
    return "bwrap" not in words[0] and any(Path(word).name == cli for word in words[:2])
