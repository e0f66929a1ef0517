"""Endings that the real Claude Code and the real Codex do not choose: a person stops them, or the daemon is killed.

All agents of a file are given their work at once, and work side by side; each test looks at its own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
from crew import CLIS, Crew, crew, descendants, eventually, lands
from crew import signal as gives
from process_table import lives

from model_server.script import Fault, Step, fail, say, shell

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("endings"), pytest.mark.parametrize("cli", CLIS)]

SANDBOXES = ("off", "auto")
HANGS = Step(hang=True, midway=True)


QUESTIONS = [{"id": "q1", "question": "Which colour?"}]
STRICT = "[limits]\nretries = 0\nreminders = 0\nwaits = 0\n"
ENDS: dict[str, tuple[list[Step], str, str | None]] = {
    "asks": ([gives("questions", questions=QUESTIONS, gate="alone"), say("I wait.")], "asked", None),
    "forgets": ([say("That was it.", gate="alone")], "crashed", None),
    "auth": ([fail(Fault.AUTH, gate="alone")], "failed", "auth"),
    "billing": ([fail(Fault.BILLING, gate="alone")], "failed", "billing"),
    "rate": ([fail(Fault.RATE, gate="alone")], "failed", "throttle"),
    "overloaded": ([fail(Fault.OVERLOADED, gate="alone")], "failed", "overload"),
    "quota": ([fail(Fault.QUOTA, gate="alone")], "exhausted", "quota"),
    "context": ([fail(Fault.CONTEXT, gate="alone")], "crashed", "context"),
}
"""Runs that end while there is no daemon: what happens, and the outcome and trouble that the next daemon finds."""


def waits(story: str, cli: str) -> list[Step]:
    """The model says nothing before the test lets all agents of the story go on."""
    *first, signals, last = lands(f"{story}-{cli}.txt")
    return [*first, replace(signals, gate=story), last]


@pytest.fixture(scope="module")
def team() -> Iterator[Crew]:
    """Every agent of this file, at work."""
    with crew(CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat-scripted") as made:
        made.house.commit({"busy.sh": "setsid sleep 4711 &\nsleep 4712\n"})
        for cli in CLIS:
            made.give(cli, "hangs", [HANGS])
            for sandbox in SANDBOXES:
                made.give(cli, f"tool-{sandbox}", [shell("sh busy.sh"), HANGS], "--sandbox", sandbox)
        yield made


@pytest.fixture(scope="module")
def orphans(team: Crew) -> Crew:
    """The daemon is killed while models think; one half of the agents ends without it, and then there is a new one."""
    strict = team.another_repository("strict", STRICT)
    for cli in CLIS:
        for story in ("alone", "found"):
            team.give(cli, story, waits(story, cli))
        for story, (steps, _, _) in ENDS.items():
            team.give(cli, story, steps, repo=strict)
    asked = {
        f"{story}-{cli}": 3 if story in ("alone", "found") else 1 for story in ("alone", "found", *ENDS) for cli in CLIS
    }
    assert team.models.wait_for(lambda: all(len(team.models.requests(each)) >= n for each, n in asked.items()))
    alone = [team.house.pid(team.names[each]) for each in asked if not each.startswith("found")]
    old = team.house.daemon
    os.kill(old, signal.SIGKILL)
    team.models.gates.add("alone")
    eventually(lambda: not lives(old) and not any(map(lives, alone)), "the end of the daemon and of some agents")
    team.house.wl("list")
    assert team.house.daemon != old
    team.models.gates.add("found")
    return team


class TestStopped:
    @pytest.mark.parametrize("story", ["hangs", *(f"tool-{sandbox}" for sandbox in SANDBOXES)])
    def test_nothing_of_it_is_left(self, team: Crew, cli: str, story: str) -> None:
        """While its model hangs or its tool runs, a stop ends it with all that it started."""
        name = team.names[f"{story}-{cli}"]
        assert team.models.wait_for(lambda: team.models.requests(f"{story}-{cli}"))
        shim = team.house.pid(name)
        if story != "hangs":
            eventually(lambda: _sleepers(shim) == 2, "its tool")
        family = descendants(shim)
        assert len(family) > 1
        team.house.wl("stop", name)
        run = team.ended(name)
        assert (run["outcome"], run["reason"], run["trouble"]) == ("stopped", "stopped by hand", None)
        assert team.page(name)["status"] == "stopped"
        assert not [words for pid, words in family.items() if lives(pid)]


class TestWithoutTheDaemon:
    @pytest.mark.parametrize("story", ["alone", "found"])
    def test_a_run_goes_on_and_lands_once(self, orphans: Crew, cli: str, story: str) -> None:
        """Whether it ends before or after the next daemon comes: it is one run, and one change."""
        name = orphans.names[f"{story}-{cli}"]
        page = orphans.landed(name)
        [run] = page["runs"]
        assert (run["outcome"], run["trouble"]) == ("done", None)
        assert {"exit code 0", "signal: done", "1 commit on " + page["branch"]} <= set(run["evidence"])
        assert [each["state"] for each in orphans.house.queue() if each["agent"] == name] == ["landed"]
        log = orphans.house.git("log", "--format=%s", "main", "--", f"{story}-{cli}.txt")
        assert log == f"Add {story}-{cli}.txt"

    @pytest.mark.parametrize("story", ENDS)
    def test_every_ending_is_known_later(self, orphans: Crew, cli: str, story: str) -> None:
        """What came of a run while nobody looked is told from what it left behind."""
        _, outcome, trouble = ENDS[story]
        run = orphans.ended(orphans.names[f"{story}-{cli}"])
        assert (run["outcome"], run["trouble"] and run["trouble"]["kind"]) == (outcome, trouble)
        assert f"exit code {1 if trouble else 0}" in run["evidence"]
        assert (f"trouble: {run['reason']}" in run["evidence"]) == bool(trouble)


def _sleepers(pid: int) -> int:
    """How many processes of a tool are below this one."""
    return sum(words[0] == "sleep" and words[1].startswith("471") for words in descendants(pid).values())
