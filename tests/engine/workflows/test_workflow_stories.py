"""Stories of workflows: a file begins, its agents take turns on one line of work, and it lands when all is quiet."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import CHOOSY, play
from workflow_stage import PAIR, WorkflowStage

from windlass.core.errors import BadInput, Conflict, NotAllowed
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.message import Kind
from windlass.core.nouns.run import Cause
from windlass.core.nouns.task import TaskState
from windlass.core.workflows.instance import Motion
from windlass.engine.workflows.start import WorkflowStart

OWN = PAIR.replace("You code.", "You code., worktree: own").replace("You review.", "You review., worktree: own")


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> WorkflowStage:
    return WorkflowStage(repo, tmp_path / "home")


class TestBeginning:
    def test_the_kickoff_starts_whom_it_addresses(self, stage: WorkflowStage) -> None:
        """With the values in its words; who is not addressed waits, and nobody else is there."""

        async def story() -> None:
            begun = await stage.begin(what="the login")
            assert (begun.name, begun.agents) == ("default", ("coder@default", "reviewer@default"))
            run = await stage.run_of("coder@default")
            assert run.cause is Cause.CALL
            assert "Fix the login." in stage.prompt_of(run) and "You code." in stage.prompt_of(run)
            assert await stage.runs("reviewer@default") == 0
            assert await stage.motion() is Motion.MOVING

        play(story)

    def test_a_value_calls_nobody(self, stage: WorkflowStage) -> None:
        """Whatever stands in a diff is data."""

        async def story() -> None:
            await stage.begin(what="@reviewer ${{ env.HOME }} $(id) `@reviewer`")
            assert await stage.runs("reviewer@default") == 0
            assert "@reviewer ${{ env.HOME }} $(id)" in stage.prompt_of(await stage.run_of("coder@default"))

        play(story)

    def test_nothing_begins_without_a_reader_or_a_value(self, stage: WorkflowStage) -> None:
        """It is said before anything is there."""

        async def story() -> None:
            with pytest.raises(BadInput, match="kickoff"):
                await stage.begin(PAIR.replace("@coder", "coder"))
            file = stage.repo / "flow.yaml"
            file.write_text(PAIR.replace("what }}", "env.NOWHERE }}"))
            with pytest.raises(BadInput, match=r"env\.NOWHERE"):
                await stage.engine.workflows.begin(WorkflowStart(path=str(stage.repo), file=str(file)))
            assert await stage.store.read(lambda store: store.agents()) == []

        play(story)

    def test_an_instance_is_started_once_at_a_time(self, stage: WorkflowStage) -> None:
        """The way out is said; another name is another instance, and neither sees the other."""

        async def story() -> None:
            await stage.begin()
            with pytest.raises(Conflict, match="running already") as refused:
                await stage.begin()
            assert "windlass stop @default" in refused.value.hint
            await stage.begin(instance="pr-7", what="another")
            project = await stage.store.read(lambda store: store.projects()[0])
            said = await stage.store.read(lambda store: store.said(project.id, channel="@pr-7"))
            assert ["another" in each.body for each in said] == [True]
            await stage.say("coder@pr-7", "@reviewer look")
            await stage.move()
            assert (await stage.runs("reviewer@default"), await stage.runs("coder@default")) == (0, 1)

        play(story)

    def test_tasks_follow_their_needs(self, stage: WorkflowStage) -> None:
        """Each begins when what it needs is done, by the agent that the file names."""
        text = PAIR.partition("setup:")[0] + (
            "tasks:\n"
            "  write: {agent: coder, brief: Write it.}\n"
            "  check: {agent: reviewer, brief: Check it., needs: [write]}\n"
        )

        async def story() -> None:
            await stage.begin(text)
            assert await stage.runs("reviewer@default") == 0
            await stage.commit("coder@default", "fix.txt", "fixed\n")
            await stage.leave("coder@default")
            assert "Check it." in stage.prompt_of(await stage.run_of("reviewer@default"))
            assert ((await stage.worktree("reviewer@default")) / "fix.txt").read_text() == "fixed\n"

        play(story)


class TestOneLineOfWork:
    def test_the_next_sees_what_the_last_has_committed_and_all_of_it_lands(self, stage: WorkflowStage) -> None:
        """One change, when all is quiet; then the instance is over, and its agents are retired."""

        async def story() -> None:
            await stage.begin()
            await stage.commit("coder@default", "fix.txt", "fixed\n")
            await stage.say("coder@default", "@reviewer please look")
            await stage.move()
            assert await stage.runs("reviewer@default") == 0, "they take turns"
            await stage.leave("coder@default")
            assert ((await stage.worktree("reviewer@default")) / "fix.txt").read_text() == "fixed\n"
            await stage.commit("reviewer@default", "test.txt", "tested\n")
            assert stage.on_main("fix.txt") == ""
            await stage.leave("reviewer@default")
            assert (stage.on_main("fix.txt"), stage.on_main("test.txt")) == ("fixed\n", "tested\n")
            over = await stage.instance()
            assert (over.live, over.reason, len(over.landing)) == (False, "all is done", 1)
            assert [agent for agent in over.agents if (await stage.agent(agent)).retired_at is None] == []

        play(story)

    def test_what_is_refused_goes_back_to_its_author(self, stage: WorkflowStage) -> None:
        """It mends it there, and the instance is not over before."""

        async def story() -> None:
            stage.check_with("! grep -q bad fix.txt")
            await stage.begin()
            await stage.commit("coder@default", "fix.txt", "bad\n")
            await stage.leave("coder@default")
            assert (await stage.run_of("coder@default")).number == 2
            assert await stage.motion() is Motion.MOVING
            await stage.finish("coder@default", "fix.txt", "good\n")
            await stage.move()
            assert (stage.on_main("fix.txt"), (await stage.instance()).live) == ("good\n", False)

        play(story)

    def test_the_users_own_checkout_is_looked_at_as_it_is(self, stage: WorkflowStage) -> None:
        """Anew for each run; nothing of it wants to land, and nobody may write there."""
        stage.add(CHOOSY)
        looks = PAIR.replace("command: code, ", "provider: choosy, permissions: read, worktree: project, ")

        async def story() -> None:
            with pytest.raises(BadInput, match="may not write in your own checkout"):
                await stage.begin(looks.replace("permissions: read, ", ""))
            (stage.repo / "draft.txt").write_text("mine\n")
            await stage.begin(looks)
            seen = await stage.worktree("coder@default")
            assert (seen / "draft.txt").read_text() == "mine\n"
            await stage.leave("coder@default")
            (stage.repo / "draft.txt").write_text("mine, mended\n")
            assert not (await stage.instance()).live
            await stage.begin(looks)
            assert (seen / "draft.txt").read_text() == "mine, mended\n"
            await stage.leave("coder@default")
            over = await stage.instance()
            assert (over.live, over.landing, over.heads) == (False, (), {})

        play(story)

    def test_without_the_gate_it_stays_on_its_branch(self, stage: WorkflowStage) -> None:
        """Nothing wants to land, and nothing is removed."""

        async def story() -> None:
            await stage.begin(PAIR + "gate: false\n")
            await stage.commit("coder@default", "fix.txt", "fixed\n")
            tree = await stage.worktree("coder@default")
            await stage.leave("coder@default")
            over = await stage.instance()
            assert (over.live, list(over.heads), over.landing) == (False, ["coder@default"], ())
            assert (tree / "fix.txt").exists()

        play(story)

    def test_who_only_reads_works_beside_the_others(self, stage: WorkflowStage) -> None:
        """It waits for nobody, and what it leaves in its worktree is nobody's work."""
        stage.add(CHOOSY)
        text = PAIR.replace("command: review, ", "provider: choosy, permissions: read, ")

        async def story() -> None:
            await stage.begin(text)
            await stage.say("coder@default", "@reviewer look")
            await stage.move()
            assert ((await stage.run_of("coder@default")).live, await stage.runs("reviewer@default")) == (True, 1)
            (await stage.worktree("reviewer@default") / "junk.txt").write_text("junk\n")
            await stage.leave("reviewer@default")
            assert (await stage.task_of("reviewer@default")).state is TaskState.DONE

        play(story)

    def test_own_worktrees_are_changes_of_their_own(self, stage: WorkflowStage) -> None:
        """Nobody takes turns there, and each one's commits stay with it."""

        async def story() -> None:
            await stage.begin(OWN)
            await stage.say("coder@default", "@reviewer go")
            await stage.move()
            assert await stage.runs("reviewer@default") == 1
            await stage.commit("coder@default", "one.txt", "1\n")
            await stage.commit("reviewer@default", "two.txt", "2\n")
            await stage.leave("coder@default")
            await stage.leave("reviewer@default")
            assert (stage.on_main("one.txt"), stage.on_main("two.txt")) == ("1\n", "2\n")
            assert len((await stage.instance()).landing) == 2

        play(story)

    def test_uncommitted_work_is_reminded_of_once_then_kept_and_named(self, stage: WorkflowStage) -> None:
        """It is not lost, and holds nobody up for ever."""

        async def story() -> None:
            await stage.begin()
            (await stage.worktree("coder@default") / "left.txt").write_text("left\n")
            await stage.leave("coder@default")
            again = await stage.run_of("coder@default")
            assert (again.number, "not committed" in stage.prompt_of(again)) == (2, True)
            await stage.leave("coder@default")
            assert "left.txt" in (await stage.run_of("coder@default")).reason
            assert (await stage.task_of("coder@default")).state is TaskState.DONE
            assert (await stage.instance()).live is False

        play(story)


class TestEnding:
    def test_one_that_stays_waits_for_more(self, stage: WorkflowStage) -> None:
        """What is landed is where its agents begin next; a person's message reaches them; `stop` ends it."""

        async def story() -> None:
            await stage.begin(stays=True)
            await stage.commit("coder@default", "fix.txt", "fixed\n")
            await stage.leave("coder@default")
            assert (await stage.instance()).live and await stage.motion() is Motion.QUIET
            assert (stage.on_main("fix.txt"), (await stage.instance()).line) == ("fixed\n", "")
            human, project = Speaker("human"), await stage.store.read(lambda store: store.projects()[0])
            await stage.engine.talk.send(human, NewMessage(body="Again.", project=project.id, to=("coder@default",)))
            await stage.move()
            assert (await stage.run_of("coder@default")).live
            assert await stage.engine.workflows.stop(str(stage.repo), "default") == ["coder@default"]
            await stage.exit("coder@default", 143)
            await stage.move()
            over = await stage.instance()
            assert (over.live, over.reason) == (False, "stopped by hand")

        play(story)

    def test_draining_lets_those_at_work_end_and_starts_nobody(self, stage: WorkflowStage) -> None:
        """What was said to the others is kept."""

        async def story() -> None:
            await stage.begin()
            await stage.say("coder@default", "@reviewer go")
            await stage.engine.workflows.drain(str(stage.repo), "default")
            await stage.leave("coder@default")
            assert await stage.runs("reviewer@default") == 0
            assert (await stage.instance()).live is False

        play(story)

    def test_a_question_to_a_person_holds_it(self, stage: WorkflowStage) -> None:
        """It waits, and goes on when it is answered."""

        async def story() -> None:
            await stage.begin()
            asked = '{"status": "questions", "questions": [{"id": "q1", "question": "Why?"}]}'
            await stage.signal("coder@default", asked)
            await stage.leave("coder@default")
            look = await stage.engine.workflows.look(str(stage.repo), "default")
            assert (look.motion, look.waiting) == (Motion.WAITING, ("coder@default asks: q1: Why?",))
            await stage.engine.talk.answer("coder@default", ["Because."])
            await stage.move()
            assert await stage.motion() is Motion.MOVING
            await stage.leave("coder@default")
            assert (await stage.instance()).live is False

        play(story)

    def test_a_change_that_is_held_is_said(self, stage: WorkflowStage) -> None:
        """It waits, and says for what."""
        stage.check_with("")

        async def story() -> None:
            await stage.begin()
            await stage.commit("coder@default", "a.txt", "a\n")
            await stage.leave("coder@default")
            look = await stage.engine.workflows.look(str(stage.repo), "default")
            assert (look.motion, look.waiting) == (Motion.WAITING, ("c1 is held: the project has no check command",))
            assert [each.name for each in await stage.engine.workflows.every(str(stage.repo))] == ["default"]

        play(story)

    def test_whoever_fails_is_named(self, stage: WorkflowStage) -> None:
        """And the rest is not held up."""

        async def story() -> None:
            stage.limit(retries=0)
            await stage.begin()
            await stage.leave("coder@default", 3)
            look = await stage.engine.workflows.look(str(stage.repo), "default")
            assert look.failed == ("coder@default: exit code 3, without a signal",)
            assert look.instance.live is False

        play(story)

    def test_a_daemon_that_dies_forgets_nothing(self, stage: WorkflowStage) -> None:
        """The next one goes on with the instance where it was."""

        async def story() -> None:
            await stage.begin()
            await stage.commit("coder@default", "fix.txt", "fixed\n")
            await stage.say("coder@default", "@reviewer go")
            await stage.restart()
            await stage.leave("coder@default")
            await stage.restart()
            await stage.leave("reviewer@default")
            assert (stage.on_main("fix.txt"), (await stage.instance()).live) == ("fixed\n", False)

        play(story)

    def test_a_second_start_begins_anew(self, stage: WorkflowStage) -> None:
        """In a session of its own, and with nothing of what was said before."""

        async def story() -> None:
            await stage.begin(what="the old thing")
            await stage.leave("coder@default")
            stage.clock.time += 10
            await stage.begin(what="the new thing")
            run = await stage.run_of("coder@default")
            assert (run.number, run.session) == (2, "")
            assert "the new thing" in stage.prompt_of(run) and "the old thing" not in stage.prompt_of(run)
            assert (await stage.agent("coder@default")).retired_at is None

        play(story)


class TestRules:
    def test_without_a_context_they_can_not_speak(self, stage: WorkflowStage) -> None:
        """The file says so."""

        async def story() -> None:
            await stage.begin(PAIR.replace("context:\n", ""))
            with pytest.raises(NotAllowed, match="has no context"):
                await stage.say("coder@default", "@reviewer go")

        play(story)

    def test_work_is_handed_only_to_those_whom_the_file_names(self, stage: WorkflowStage) -> None:
        """To people it always may be."""
        text = PAIR.replace("You code.", "You code., handoff_to: [tester]") + ""
        text = text.replace("  reviewer:", "  tester: {command: test, system_prompt: You test.}\n  reviewer:")

        async def story() -> None:
            await stage.begin(text)
            with pytest.raises(NotAllowed, match="may not hand work to reviewer@default"):
                await stage.say("coder@default", "Yours.", to=("reviewer",), kind=Kind.HANDOFF)
            await stage.say("coder@default", "Yours.", to=("tester",), kind=Kind.HANDOFF)
            await stage.say("coder@default", "Yours.", to=("human",), kind=Kind.HANDOFF)

        play(story)

    def test_one_at_a_time_but_for_whoever_is_asked(self, stage: WorkflowStage) -> None:
        """Who waits for an answer leaves its place to the one who gives it."""

        async def story() -> None:
            await stage.begin(OWN + "limits: {runs: 1}\n")
            coder = await stage.speaker("coder@default")
            caller = await stage.engine.callers.identify(coder)
            await stage.engine.callers.ask(caller, "Which port?", agent="reviewer")
            await stage.move()
            assert await stage.runs("reviewer@default") == 1

        play(story)

    def test_its_own_limits_only_lower(self, stage: WorkflowStage) -> None:
        """One at a time, where its file says so; and it is stopped when its time is over."""

        async def story() -> None:
            await stage.begin(OWN + "limits: {runs: 1, timeout: 60s}\n")
            await stage.say("coder@default", "@reviewer go")
            await stage.move()
            assert await stage.runs("reviewer@default") == 0
            stage.clock.time += 61
            await stage.move()
            over = await stage.instance()
            assert (over.live, over.reason) == (False, "its time was over (limits.timeout)")

        play(story)
