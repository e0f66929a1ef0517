"""Windlass with the real Claude Code and the real Codex: from a piece of work to main.

All agents of a file are given their work at once, and work side by side; each test looks at its own. On a busy machine
one that has given its signal may be ended before its last words, and say them when it is resumed: then it is reminded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from crew import CLIS, SANDBOX, Crew, crew, edits, lands, signal
from real_clis import do_without

from model_server.script import Step, Usage, say, shell, write

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("stories"), pytest.mark.parametrize("cli", CLIS)]

ASK = signal("questions", questions=[{"id": "q1", "question": "Which colour?"}])
MODELS = {"claude": "claude-haiku-4-5", "codex": "gpt-5.5"}
TYPED = {"claude": "claude-opus-4-5", "codex": "gpt-5.4"}
SAVER = "---\nname: saver-{0}\nrole: Saver\nprovider: {0}\nmodel: {1}\n---\nSave.\n"
DEAR = Usage(input=1000, output=50, cached=400)


def forgets(name: str) -> list[Step]:
    """It works and says so, but gives its signal only when it is reminded."""
    steps = [*edits(name), say("That was it."), signal("done", result="Now I have said it."), say("Done.")]
    return [replace(step, usage=DEAR) for step in steps]


def by_shell(name: str) -> list[Step]:
    """It writes a file as every model can, with whatever tools it has."""
    commits = shell(f"echo new > {name} && git add -A && git commit -q -m 'Add {name}'")
    return [commits, signal("done", result="It is there."), say("I am done.")]


def tries_to_write(done: Step) -> list[Step]:
    """It does what an agent that may only read must not do."""
    return [write("written.txt", "new\n"), shell("echo more >> README.md"), shell("cat README.md"), done, say("Done.")]


@pytest.fixture(scope="module")
def team() -> Iterator[Crew]:
    """Every agent of this file, at work."""
    by_command = shell('windlass agent complete "I have looked."')
    by_file = signal("done", result="I have looked.")
    with crew(ANTHROPIC_API_KEY="sk-scripted") as made:
        made.house.commit({f".windlass/agents/saver-{cli}.md": SAVER.format(cli, MODELS[cli]) for cli in CLIS})
        for cli in CLIS:
            made.give(cli, "free", lands(f"free-{cli}.txt"), "--sandbox", "off")
            made.give(cli, "typed", by_shell(f"typed-{cli}.txt"), "--model", TYPED[cli])
            made.give(cli, "kept", lands(f"kept-{cli}.txt"))
            made.give(cli, "asks", [ASK, say("I wait."), *lands(f"asks-{cli}.txt")], "--sandbox", "off")
            by_word = shell('windlass agent ask "Which colour?"')
            made.give(cli, "says", [by_word, say("I wait."), *lands(f"says-{cli}.txt")])
            made.give(cli, "forgets", forgets(f"forgets-{cli}.txt"), "--agent", f"saver-{cli}")
        for cli, done in (("claude", by_command), ("codex", by_file)):
            for sandbox in ("off", "auto"):
                steps = tries_to_write(done)
                made.give(cli, f"reads-{sandbox}", steps, "--permissions", "read", "--sandbox", sandbox)
        yield made


@pytest.fixture(scope="module")
def asked(team: Crew) -> dict[str, list[str]]:
    """What each agent with a question wanted to know; all are answered by now."""
    asked = {}
    for name in (team.names[f"{story}-{cli}"] for story in ("asks", "says") for cli in CLIS):
        team.ended(name)
        asked[name] = [each["question"] for each in team.page(name)["questions"]]
        team.house.wl("answer", name, "q1=Ultramarine, please")
    return asked


class TestLanding:
    @pytest.mark.parametrize(("story", "keeper"), [("free", "unenforced"), ("kept", "bubblewrap")])
    def test_it_edits_commits_and_lands(self, team: Crew, cli: str, story: str, keeper: str) -> None:
        """With its own tools it writes and commits; its signal is believed, and main has the file."""
        if story == "kept" and not SANDBOX:
            do_without("there is no bubblewrap")
        name = team.names[f"{story}-{cli}"]
        team.landed(name)
        page = team.page(name)
        [run] = page["runs"]
        assert (run["outcome"], run["trouble"], run["sandbox"]) == ("done", None, keeper)
        assert "signal: done" in run["evidence"]
        assert team.house.git("show", f"main:{story}-{cli}.txt") == "new"
        assert page["session"] == team.models.requests(f"{story}-{cli}")[0].asked.conversation

    @pytest.mark.parametrize("sandbox", ["off", "auto"])
    def test_one_that_may_only_read_changes_nothing(self, team: Crew, cli: str, sandbox: str) -> None:
        """It can look and give its signal; whatever would write is refused, with a sandbox of ours and without."""
        if cli == "claude" and sandbox == "auto" and not SANDBOX:
            do_without("there is no bubblewrap")
        story = f"reads-{sandbox}"
        run = team.ended(team.names[f"{story}-{cli}"])
        assert (run["outcome"], run["reason"]) == ("done", "nothing was committed, so there is nothing to land")
        assert {"signal: done", "clean tree"} <= set(run["evidence"])
        assert "# A small project" in team.models.requests(f"{story}-{cli}")[-1].asked.results[2]


class TestWords:
    def test_its_model_is_the_one_that_was_typed(self, team: Crew, cli: str) -> None:
        """In every request, and on its page."""
        page = team.landed(team.names[f"typed-{cli}"])
        assert {request.asked.model for request in team.models.requests(f"typed-{cli}")} == {TYPED[cli]}
        assert page["model"] == TYPED[cli]

    def test_every_request_says_who_it_is(self, team: Crew, cli: str) -> None:
        """Claude Code says so in its system prompt, also when it is resumed; Codex in its first prompt."""
        assert len(team.landed(team.names[f"forgets-{cli}"])["runs"]) > 1
        for asked in (request.asked for request in team.models.requests(f"forgets-{cli}")):
            said = {"system": asked.system.count("You are Saver"), "prompts": str(asked.prompts).count("You are Saver")}
            assert said == ({"system": 1, "prompts": 0} if cli == "claude" else {"system": 0, "prompts": 1})


class TestGoingOn:
    @pytest.mark.parametrize("story", ["asks", "says"])
    def test_its_question_is_answered(self, team: Crew, asked: dict[str, list[str]], cli: str, story: str) -> None:
        """A question by file or by command ends its run; the answer wakes the same session, which lands."""
        name = team.names[f"{story}-{cli}"]
        assert asked[name] == ["q1: Which colour?"]
        team.landed(name)
        page = team.page(name)
        first, second, *_ = page["runs"]
        assert (first["outcome"], first["reason"]) == ("asked", "Which colour?")
        assert (second["cause"], second["session"]) == ("mail", first["session"])
        assert (page["runs"][-1]["outcome"], page["session"]) == ("done", first["session"])
        assert any("Ultramarine, please" in prompt for prompt in team.prompts(cli, story))
        assert {request.asked.conversation for request in team.models.requests(f"{story}-{cli}")} == {first["session"]}
        assert page["questions"] == []

    def test_it_is_reminded_of_its_signal(self, team: Crew, cli: str) -> None:
        """Without a signal it is asked for one in the same session, and lands."""
        forgot, last = team.landed(team.names[f"forgets-{cli}"])["runs"]
        assert (forgot["outcome"], forgot["reason"]) == ("crashed", "it ended without a signal")
        assert {"exit code 0", "no signal"} <= set(forgot["evidence"])
        assert (last["cause"], last["outcome"], last["session"]) == ("reminder", "done", forgot["session"])
        assert "without a signal" in team.prompts(cli, "forgets")[-1]


class TestUsage:
    def test_each_run_has_its_own_and_the_agent_has_all(self, team: Crew, cli: str) -> None:
        """The runs of one session have what each used, also where the CLI only tells what the session used."""
        page = team.landed(team.names[f"forgets-{cli}"])
        requests = team.models.requests(f"forgets-{cli}")
        assert {request.asked.model for request in requests} == {MODELS[cli]}
        calls = Counter(sum("<woken>" in prompt for prompt in request.asked.prompts) for request in requests)
        used = [each["usage"] for each in page["runs"]]
        tokens = [(each["input_tokens"], each["output_tokens"], each["cached_tokens"]) for each in used]
        assert tokens == [(1000 * n, 50 * n, 400 * n) for _, n in sorted(calls.items())]
        assert page["usage"]["input_tokens"] == 1000 * len(requests)
        assert page["usage"]["output_tokens"] == 50 * len(requests)
        costs = [each["cost_usd"] for each in used]
        assert costs[0] > 0
        assert costs == pytest.approx([costs[0] * n / calls[0] for _, n in sorted(calls.items())])
        assert page["cost_usd"] == pytest.approx(sum(costs))
