"""What gets in a run's way: an agent that tells of its troubles, and what we do about each."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from stage import Stage, play

from windlass.core.nouns.agent import Status
from windlass.core.nouns.run import Cost, Identity, Outcome, Run, RunTrouble, TroubleKind, Usage
from windlass.core.nouns.task import TaskState
from windlass.core.runs.provider import LineReading, Provider
from windlass.engine.projects.tasks import Order
from windlass.providers import FoundProviders
from windlass.providers.output.prices import OPENAI, price


def read(line: str) -> LineReading:
    """Each line is a reading as JSON: a trouble by kind, a session, a session's total of input tokens, calls, tools."""
    said = json.loads(line)
    kind = said.get("trouble")
    trouble = RunTrouble(TroubleKind(kind), said.get("words", ""), said.get("until")) if kind else None
    counted = {"total": "input_tokens", "calls": "calls", "tools": "tool_uses"}
    usage = Usage(**{field: said[key] for key, field in counted.items() if key in said})
    return LineReading(
        text=said.get("say", ""),
        session=said.get("session", ""),
        trouble=trouble,
        usage=usage if usage != Usage() else None,
        total="total" in said,
        ended=said.get("ended", False),
    )


TALKER = Provider(
    name="talker",
    summary="says what happens to it",
    argv=lambda start: ("talker", start.session),
    read=read,
    structured=True,
    resumes=True,
    price=lambda model, usage: usage.input_tokens / 1000,
)


class TalkerStage(Stage):
    """A stage with one agent that talks."""

    name = ""

    async def begin(self) -> None:
        assert isinstance(self.engine.ports.providers, FoundProviders)
        self.engine.ports.providers.providers = {"talker": TALKER}
        order = Order(path=str(self.repo), title="Fix it", provider="talker", options={})
        _, agent = await self.engine.tasks.add(order)
        self.name = agent.id
        await self.move()

    async def say(self, **words: object) -> None:
        self.processes.say((await self.latest()).id, json.dumps(words).encode() + b"\n")
        await self.move()

    async def end(self, code: int = 1, **words: object) -> None:
        await self.say(**words)
        await self.exit(self.name, code)
        await self.move()

    async def latest(self) -> Run:
        return await self.run_of(self.name)

    async def pass_time(self, seconds: float) -> None:
        self.clock.time += seconds
        await self.move()

    async def status(self) -> Status:
        return (await self.engine.status.page(self.name)).view.status


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> TalkerStage:
    return TalkerStage(repo, tmp_path / "home")


def test_an_account_without_quota_goes_on_by_itself_at_its_reset(stage: TalkerStage) -> None:
    """Until then the agent waits, and says for what; then the same session goes on."""

    async def story() -> None:
        await stage.begin()
        await stage.end(session="s1", trouble="quota", words="resets 8pm", until=stage.clock.time + 600)
        run = await stage.latest()
        assert (run.number, run.outcome) == (1, Outcome.EXHAUSTED)
        assert "resets 8pm" in run.reason
        assert await stage.status() is Status.WAITING
        assert (await stage.engine.status.page(stage.name)).view.evidence.endswith("resets 8pm; goes on in 10 min")

        await stage.pass_time(599)
        assert (await stage.latest()).number == 1
        await stage.pass_time(1)
        run = await stage.latest()
        assert (run.number, run.live, run.session) == (2, True, "s1")
        assert stage.processes.started[run.id].launch.argv == ("talker", "s1")

    play(story)


def test_the_end_of_a_quota_is_remembered_from_line_to_line(stage: TalkerStage) -> None:
    """A program may tell the time in one line, and in the next say without it how the turn ended."""

    async def story() -> None:
        await stage.begin()
        until = stage.clock.time + 600
        await stage.say(trouble="quota", until=until)
        await stage.end(trouble="quota", words="resets 8pm", ended=True)
        trouble = (await stage.latest()).trouble
        assert trouble == RunTrouble(TroubleKind.QUOTA, "resets 8pm", until)

    play(story)


def test_a_lost_session_is_left(stage: TalkerStage) -> None:
    """A session that its program does not find any more is not asked for again: a new one is begun."""

    async def story() -> None:
        await stage.begin()
        await stage.end(session="s1", trouble="lost", words="No conversation found")
        run = await stage.latest()
        assert (run.number, run.live, run.session) == (2, True, "")

    play(story)


def test_a_busy_server_is_tried_ever_later_with_one_word_about_it(stage: TalkerStage) -> None:
    """However often it happens, the agent reads once that it is to go on."""

    async def story() -> None:
        await stage.begin()
        for seconds in (30, 60, 120):
            number = (await stage.latest()).number
            await stage.end(trouble="throttle", words="429")
            await stage.pass_time(seconds - 1)
            assert (await stage.latest()).number == number
            await stage.pass_time(1)
            assert (await stage.latest()).number == number + 1
        assert stage.prompt_of(await stage.latest()).count("Go on.") == 1

    play(story)


def test_who_is_not_logged_in_asks_a_person_and_goes_on_when_answered(stage: TalkerStage) -> None:
    """No run is paid for until someone says that it is mended."""

    async def story() -> None:
        await stage.begin()
        await stage.end(trouble="auth", words="Please run /login")
        assert (await stage.task_of(stage.name)).state is TaskState.WAITING
        assert await stage.status() is Status.WAITING
        asked = (await stage.engine.status.page(stage.name)).questions
        assert "Please run /login" in asked[0].body
        await stage.pass_time(86_400)
        assert (await stage.latest()).number == 1

        await stage.engine.talk.answer(stage.name, ["Logged in."])
        await stage.move()
        assert (await stage.latest()).number == 2
        assert (await stage.task_of(stage.name)).state is TaskState.ACTIVE

    play(story)


def test_a_trouble_that_the_program_overcame_is_forgotten(stage: TalkerStage) -> None:
    """Reconnecting is no failure when the turn ends well; then only the missing signal counts."""

    async def story() -> None:
        await stage.begin()
        await stage.say(trouble="overload", words="Reconnecting 1/5")
        assert (await stage.latest()).trouble is not None
        await stage.end(0, ended=True)
        runs = await stage.store.read(lambda store: store.runs_of(stage.name))
        assert (runs[0].outcome, runs[0].trouble, runs[0].reason) == (
            Outcome.CRASHED,
            None,
            "it ended without a signal",
        )

    play(story)


def test_what_a_program_says_because_we_end_it_is_no_trouble(stage: TalkerStage) -> None:
    """Some report a failure when they are stopped; it is our own doing."""

    async def story() -> None:
        await stage.begin()
        stop = stage.processes.stop

        async def complaining(run: str, identity: Identity | None, *, grace: float, gently: str = "TERM") -> int:
            stage.processes.say(run, b'{"trouble": "error", "words": "interrupted"}\n')
            return await stop(run, identity, grace=grace, gently=gently)

        stage.processes.stop = complaining  # type: ignore[method-assign]  # a program that complains when it is ended
        await stage.engine.runs.stop(stage.name, "stopped by hand")
        await stage.move()
        run = await stage.latest()
        assert (run.outcome, run.reason, run.trouble) == (Outcome.STOPPED, "stopped by hand", None)
        assert not any("interrupted" in each for each in run.evidence)

    play(story)


def test_silence_is_ended_with_its_reason_and_tried_again(stage: TalkerStage) -> None:
    """A hung program does not hold its slot for ever; output in between starts the count anew."""

    async def story() -> None:
        await stage.begin()
        stage.limit(silent_minutes=10)
        await stage.pass_time(590)
        await stage.say(session="s1")
        await stage.pass_time(590)
        assert (await stage.latest()).live
        await stage.pass_time(11)
        runs = await stage.store.read(lambda store: store.runs_of(stage.name))
        assert runs[0].outcome is Outcome.CRASHED
        assert runs[0].trouble is not None
        assert runs[0].trouble.kind is TroubleKind.STALL
        assert "no output for 10 min" in runs[0].reason
        assert "run.halted" in await stage.kinds(runs[0].id)
        assert (runs[1].live, runs[1].session) == (True, "s1")

    play(story)


def test_a_runaway_is_ended_for_good(stage: TalkerStage) -> None:
    """More of the same would cost more of the same."""

    async def story() -> None:
        await stage.begin()
        stage.limit(run_minutes=60)
        for _ in range(7):
            await stage.say(session="s1")
            await stage.pass_time(599)
        run = await stage.latest()
        assert (run.number, run.outcome) == (1, Outcome.FAILED)
        assert "limits.run_minutes" in run.reason
        assert (await stage.task_of(stage.name)).state is TaskState.FAILED

    play(story)


def test_a_session_s_total_is_split_among_its_runs(stage: TalkerStage) -> None:
    """Numbers that count on from run to run are not added up twice; what has no price gets one."""

    async def story() -> None:
        await stage.begin()
        await stage.say(session="s1", calls=3, tools=2)
        await stage.say(session="s1", total=300)
        await stage.end(session="s1", total=400, ended=True)
        await stage.say(calls=2, tools=1)
        await stage.say(tools=4)
        await stage.end(session="s1", total=500, ended=True)
        runs = await stage.store.read(lambda store: store.runs_of(stage.name))
        assert [run.usage.input_tokens for run in runs] == [400, 100]
        assert [run.usage.calls for run in runs] == [3, 2]
        assert [run.usage.tool_uses for run in runs] == [2, 5]
        assert [run.usage.cost_usd for run in runs] == [0.4, 0.1]
        assert (await stage.engine.status.every())[0].cost == Cost(0.5)
        used = (await stage.engine.status.page(stage.name)).usage
        assert (used.input_tokens, used.tool_uses) == (500, 7)

    play(story)


def test_a_price_that_nobody_knows_is_unknown(stage: TalkerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not nothing: tokens that were used without a price are told apart from runs that asked no model."""
    monkeypatch.setattr(f"{__name__}.TALKER", replace(TALKER, price=partial(price, OPENAI)))

    async def story() -> None:
        await stage.begin()
        before = (await stage.engine.status.every())[0].cost
        await stage.end(session="s1", total=400, ended=True)
        after = (await stage.engine.status.every())[0].cost
        assert (before, before.known) == (Cost(), 0.0)
        assert (after, after.known) == (Cost(unpriced=1), None)

    play(story)


def test_output_for_programs_is_read_for_people(stage: TalkerStage) -> None:
    """Each line becomes what it means, also the last one that no newline ended."""

    async def story() -> None:
        await stage.begin()
        run = await stage.latest()
        stage.processes.say(run.id, b'{"say": "Reading a.py"}\n{"say": "Wri')
        await stage.move()
        stage.processes.say(run.id, b'ting"}\n{}\n{"say": "Bye"}')
        await stage.exit(stage.name, 0)
        await stage.move()
        pieces = [piece async for piece in stage.engine.output.pieces(stage.name, number=1)]
        assert [text for piece in pieces for text in piece.said or ()] == ["Reading a.py", "Writing", "Bye"]
        assert b"".join(piece.chunk.content for piece in pieces).endswith(b'"Bye"}')

    play(story)
