"""Stories of how an instance ends: by itself, by a person, by its time; and of what can no longer happen after that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from stage import play
from workflow_stage import PAIR, WorkflowStage

from windlass.core.errors import BadInput, Conflict, NotAllowed
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.message import Kind
from windlass.core.nouns.task import Task, TaskState
from windlass.core.workflows.instance import Instance, InstanceEnding, Motion
from windlass.engine.projects.tasks import Hiring

BOTH = PAIR.replace("@coder please", "@coder @reviewer please")
TASKS = PAIR.partition("setup:")[0] + (
    "tasks:\n  write: {agent: coder, brief: Write it.}\n  check: {agent: reviewer, brief: Check it., needs: [write]}\n"
)
ASKS = '{"status": "questions", "questions": [{"id": "q1", "question": "Why?"}]}'


class EndingStage(WorkflowStage):
    async def stop(self) -> None:
        await self.engine.workflows.stop(str(self.repo), "default")
        await self.move()

    async def drain(self) -> None:
        await self.engine.workflows.drain(str(self.repo), "default")
        await self.move()

    async def changes(self) -> list[Change]:
        return await self.store.read(lambda store: [*store.changes(ended=False), *store.changes(ended=True)])

    async def person_says(self, body: str, to: str) -> None:
        project = await self.store.read(lambda store: store.projects()[0])
        self.clock.time += 1
        await self.engine.talk.send(Speaker("human"), NewMessage(body=body, project=project.id, to=(to,)))
        await self.move()


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> EndingStage:
    return EndingStage(repo, tmp_path / "home")


class TestStopping:
    def test_what_wanted_to_land_does_not_land_any_more(self, stage: EndingStage) -> None:
        """Its branch stays, and its task is over."""

        async def story() -> None:
            stage.check_with("")
            await stage.begin()
            await stage.commit("coder@default", "a.txt", "a\n")
            await stage.leave("coder@default")
            [change] = await stage.changes()
            assert change.state is ChangeState.HELD
            await stage.stop()
            stage.check_with("true")
            await stage.move()
            [change] = await stage.changes()
            assert (change.state, stage.on_main("a.txt")) == (ChangeState.CLOSED, "")
            over = await stage.instance()
            assert (over.ending, over.reason) == (InstanceEnding.STOPPED, "stopped by hand")

        play(story)

    def test_a_daemon_that_dies_in_between_gives_up_when_it_is_back(self, stage: EndingStage) -> None:
        """The end is written first; what follows from it is done by whoever reads that."""

        async def story() -> None:
            stage.check_with("")
            await stage.begin()
            await stage.commit("coder@default", "a.txt", "a\n")
            await stage.leave("coder@default")
            over = replace(
                await stage.instance(), ended_at=stage.clock.time, ending=InstanceEnding.STOPPED, reason="stopped"
            )
            await stage.store.write(lambda store: store.record("instance.ended", over.channel, over))
            await stage.restart()
            stage.check_with("true")
            await stage.move()
            assert [change.state for change in await stage.changes()] == [ChangeState.CLOSED]

        play(story)

    def test_last_words_start_nobody(self, stage: EndingStage) -> None:
        """Nor anything else that an agent says when all is over; a person still can."""

        async def story() -> None:
            await stage.begin()
            await stage.engine.workflows.stop(str(stage.repo), "default")
            with pytest.raises(NotAllowed, match="This run is over"):
                await stage.say("coder@default", "@reviewer last words")
            await stage.leave("coder@default")
            assert await stage.runs("reviewer@default") == 0
            await stage.person_says("Look at this.", "reviewer@default")
            assert await stage.runs("reviewer@default") == 1

        play(story)

    def test_what_a_person_wants_after_the_end_lands_as_any_work_does(self, stage: EndingStage) -> None:
        """It is no part of the instance any more, and not lost."""

        async def story() -> None:
            await stage.begin()
            await stage.leave("coder@default")
            assert (await stage.instance()).ending is InstanceEnding.DONE
            await stage.person_says("One more fix.", "coder@default")
            await stage.finish("coder@default", "late.txt", "late\n")
            await stage.move()
            assert stage.on_main("late.txt") == "late\n"

        play(story)

    def test_time_that_is_over_is_an_end_of_its_own(self, stage: EndingStage) -> None:
        """For the exit code."""

        async def story() -> None:
            await stage.begin(PAIR + "limits: {timeout: 60s}\n")
            stage.clock.time += 61
            await stage.move()
            assert (await stage.instance()).ending is InstanceEnding.TIMEOUT

        play(story)


class TestDraining:
    def test_nobody_is_started_any_more_whatever_is_said(self, stage: EndingStage) -> None:
        """Those at work end, and it is over."""

        async def story() -> None:
            await stage.begin()
            await stage.drain()
            await stage.say("coder@default", "@reviewer please")
            await stage.move()
            assert (await stage.runs("reviewer@default"), await stage.motion()) == (0, Motion.MOVING)
            await stage.leave("coder@default")
            assert (await stage.instance()).ending is InstanceEnding.DRAINED

        play(story)

    def test_what_has_not_begun_is_given_up(self, stage: EndingStage) -> None:
        """Tasks, and a run that crashed and would have been started again."""

        async def story() -> None:
            await stage.begin(TASKS)
            await stage.drain()
            await stage.leave("coder@default", 3)
            assert await stage.runs("coder@default") == 1
            assert (await stage.instance()).ending is InstanceEnding.DRAINED
            assert (await stage.task_of("reviewer@default")).state is TaskState.CANCELLED

        play(story)


class TestQuiet:
    def test_what_needs_a_task_that_failed_is_given_up(self, stage: EndingStage) -> None:
        """Else it would be waited for, for ever."""

        async def story() -> None:
            stage.limit(retries=0)
            await stage.begin(TASKS)
            await stage.leave("coder@default", 3)
            task = await stage.task_of("reviewer@default")
            assert (task.title, task.state) == ("Check it.", TaskState.FAILED)
            assert "which is failed" in task.reason
            look = await stage.engine.workflows.look(str(stage.repo), "default")
            assert look.instance.ending is InstanceEnding.DONE and look.failed == (
                "coder@default: exit code 3, without a signal",
            )

        play(story)

    def test_a_chain_of_needs_ends_at_once(self, stage: EndingStage) -> None:
        """One tick gives up all tasks behind a failed one, however long the chain is and in whatever order."""

        async def story() -> None:
            project = await stage.engine.projects.at(str(stage.repo))
            needs = {"t1": "t3", "t2": "t4", "t3": "t2", "t4": "t9"}
            failed = Task(id="t9", project=project.id, title="x", agent="coder", state=TaskState.FAILED)
            behind = replace(failed, state=TaskState.OPEN)
            tasks = [failed, *(replace(behind, id=key, needs=(need,)) for key, need in needs.items())]
            started = Instance(name="x", project=project.id, workflow="x", source="x.yaml", agents=("coder",))
            await stage.store.write(lambda store: store.record("tasks.added", "x", started, *tasks))

            await stage.engine.workflows.tick()

            ended = await stage.store.read(lambda store: [store.find(Task, key) for key in needs])
            assert [task.state for task in ended if task] == [TaskState.FAILED] * 4

        play(story)

    def test_who_asks_a_person_holds_the_others_and_that_is_said(self, stage: EndingStage) -> None:
        """It waits; with an answer, both go on."""

        async def story() -> None:
            await stage.begin(BOTH)
            await stage.signal("coder@default", ASKS)
            await stage.leave("coder@default")
            look = await stage.engine.workflows.look(str(stage.repo), "default")
            assert look.motion is Motion.WAITING and look.waiting[0] == "coder@default asks: q1: Why?"
            await stage.engine.talk.answer("coder@default", ["Because."])
            await stage.move()
            await stage.leave("coder@default")
            assert await stage.motion() is Motion.MOVING
            await stage.leave("reviewer@default")
            assert (await stage.instance()).ending is InstanceEnding.DONE

        play(story)

    def test_a_change_that_is_held_keeps_nobody_from_working(self, stage: EndingStage) -> None:
        """In one that stays, the next is called and begins."""

        async def story() -> None:
            stage.check_with("")
            await stage.begin(stays=True)
            await stage.commit("coder@default", "a.txt", "a\n")
            await stage.leave("coder@default")
            await stage.person_says("Look at it.", "reviewer@default")
            assert await stage.runs("reviewer@default") == 1
            assert ((await stage.worktree("reviewer@default")) / "a.txt").read_text() == "a\n"

        play(story)

    def test_what_was_mended_is_one_change_and_the_next_begins_at_main(self, stage: EndingStage) -> None:
        """Its first form is nobody's line any more."""

        async def story() -> None:
            stage.check_with("! grep -q bad fix.txt")
            await stage.begin(stays=True)
            await stage.commit("coder@default", "fix.txt", "bad\n")
            await stage.leave("coder@default")
            await stage.finish("coder@default", "fix.txt", "good\n")
            await stage.move()
            assert [change.state for change in await stage.changes()] == [ChangeState.LANDED]
            assert ((await stage.instance()).line, (await stage.instance()).heads) == ("", {})

        play(story)


class TestStartingAgain:
    def test_what_was_said_before_is_not_told_again(self, stage: EndingStage) -> None:
        """Neither to whoever follows it, nor to its agents."""

        async def story() -> None:
            await stage.begin(what="the first")
            await stage.leave("coder@default")
            stage.clock.time += 1
            again = await stage.begin(TASKS)
            assert again.after == 1
            assert "the first" not in stage.prompt_of(await stage.run_of("coder@default"))

        play(story)

    def test_nobodys_place_is_taken(self, stage: EndingStage) -> None:
        """An agent that a person has made, and one that is still at work."""

        async def story() -> None:
            here, options = str(stage.repo), {"command": "x"}
            made = Hiring(path=here, name="reviewer", instance="mine", provider="command", options=options)
            await stage.engine.tasks.hire(made)
            with pytest.raises(Conflict, match="reviewer@mine is an agent there already"):
                await stage.begin(instance="mine")
            await stage.begin()
            await stage.leave("coder@default")
            await stage.person_says("One more.", "coder@default")
            with pytest.raises(Conflict, match="coder@default is still at work"):
                await stage.begin()

        play(story)


@pytest.mark.parametrize(("name", "instance"), [("all", ""), ("main", ""), ("user", ""), ("helper", "all")])
def test_nobody_takes_a_reserved_word(stage: EndingStage, name: str, instance: str) -> None:
    """A line to all, or a channel's name, would mean that agent or instance from then on."""

    async def story() -> None:
        made = Hiring(path=str(stage.repo), name=name, instance=instance, provider="command", options={"command": "x"})
        with pytest.raises(BadInput, match="is reserved"):
            await stage.engine.tasks.hire(made)
        with pytest.raises(BadInput, match="is reserved"):
            await stage.begin(instance=instance or name)

    play(story)


def test_an_agent_that_was_made_by_hand_keeps_its_terms(stage: EndingStage) -> None:
    """A file of the same name is another's."""

    async def story() -> None:
        folder = stage.repo / ".windlass/agents"
        folder.mkdir(parents=True)
        (folder / "helper.md").write_text("---\nname: helper\ndescription: Helps\n---\nYou are another.\n")
        made = Hiring(path=str(stage.repo), name="helper", provider="command", options={"command": "mine"})
        await stage.engine.tasks.hire(made)
        await stage.person_says("Help.", "helper")
        agent = await stage.agent("helper")
        assert (dict(agent.options), agent.talks) == ({"command": "mine"}, False)

    play(story)


def test_a_workflow_counts_and_not_an_agents_file_of_that_name(stage: EndingStage) -> None:
    """To whom work may be handed is what the workflow says."""

    async def story() -> None:
        folder = stage.repo / ".windlass/agents"
        folder.mkdir(parents=True)
        text = "---\nname: coder\ndescription: Codes\nhandoff_to: [nobody-else]\n---\nYou code.\n"
        (folder / "coder.md").write_text(text)
        await stage.begin()
        await stage.say("coder@default", "Yours.", to=("reviewer",), kind=Kind.HANDOFF)
        await stage.leave("coder@default")
        assert await stage.runs("reviewer@default") == 1

    play(story)
