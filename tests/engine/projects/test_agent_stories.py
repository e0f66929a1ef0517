"""Stories of agents that a repository defines: they stay, take one task after the other, and are made ready."""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stage import CHOOSY, Stage, play

import patience
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.nouns.agent import Agent, Confinement, Permissions, Status
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import Task, TaskState
from windlass.core.settings.schema import WorktreeSettings
from windlass.engine.projects.tasks import Order

CODER = """---
name: coder
role: Senior developer
permissions: full
sandbox: auto
model: big
---
Work on {workplace_name}.
"""


def define(repo: Path, name: str, text: str) -> None:
    folder = repo / ".windlass" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> Stage:
    define(repo, "coder", CODER)
    define(repo, "reviewer", "---\nname: reviewer\nrole: x\n---\n")
    (repo / ".git/info/exclude").write_text("/.windlass/\n.env\n")
    return Stage(repo, tmp_path / "home")


async def give(
    stage: Stage, title: str, agent: str = "coder", *, command: str = "x", **more: Any
) -> tuple[Task, Agent]:
    given: dict[str, Any] = {"provider": "command", "options": {"command": command}, **more}
    order = Order(path=str(stage.repo), title=title, agent=agent, **given)
    return await stage.engine.tasks.add(order)


async def state(stage: Stage, task: Task) -> TaskState:
    return (await stage.engine.tasks.get(task.id)).state


def setting(stage: Stage, **worktree: object) -> None:
    settings = WorktreeSettings(**worktree)  # type: ignore[arg-type]  # settings by name, as a file has them
    stage.settings.settings = replace(stage.settings.settings, worktree=settings)


class TestDefinitions:
    def test_an_agent_is_what_its_file_says(self, stage: Stage) -> None:
        """Its role, prompt, model and rights; the file is read anew with every task."""

        async def story() -> None:
            stage.add(CHOOSY)
            _, coder = await give(stage, "First", provider="choosy", options={})
            define(stage.repo, "coder", CODER.replace("Senior", "Junior").replace("permissions: full\n", ""))
            _, later = await give(stage, "Second", provider="choosy", options={})

            assert coder.source == ".windlass/agents/coder.md"
            assert (coder.role, coder.body, coder.model) == ("Senior developer", "Work on {workplace_name}.", "big")
            assert (coder.permissions, coder.sandbox) == (Permissions.FULL, Confinement.AUTO)
            assert (later.id, later.role, later.permissions) == ("coder", "Junior developer", Permissions.EDIT)
            assert later.created_at == coder.created_at

        play(story)

    def test_what_is_typed_is_stronger_than_the_file(self, stage: Stage) -> None:
        """Model, permissions, sandbox."""

        async def story() -> None:
            stage.add(CHOOSY)
            typed = {"model": "small", "permissions": Permissions.READ, "sandbox": Confinement.OFF}
            _, coder = await give(stage, "It", provider="choosy", options={}, **typed)
            assert (coder.model, coder.permissions, coder.sandbox) == tuple(typed.values())

        play(story)

    def test_a_model_is_for_a_provider_that_has_models(self, stage: Stage) -> None:
        """A typed one is refused by any other; the one in a file is not for it. One that is no name is never taken."""

        async def story() -> None:
            stage.add(CHOOSY)
            with pytest.raises(BadInput, match="command can't be told which model") as refused:
                await give(stage, "It", model="big")
            for model in ("--yolo", "two words", "a\nb", "a\0b", "x" * 201):
                with pytest.raises(BadInput, match="is no name of a model"):
                    await give(stage, "It", provider="choosy", options={}, model=model)
            _, coder = await give(stage, "It")
            assert (refused.value.hint, coder.model) == ("Leave --model out.", "")
            assert len(await stage.store.read(lambda store: store.unfinished_tasks())) == 1

        play(story)

    def test_a_provider_that_is_not_there_is_named_by_line(self, stage: Stage) -> None:
        """As a warning: the settings of others may describe it."""
        define(stage.repo, "lost", "---\nname: lost\nrole: x\nprovider: comand\n---\n")

        async def story() -> None:
            [problem] = (await stage.engine.definitions.at(str(stage.repo))).problems
            assert (problem.file, problem.line, problem.gravity) == (".windlass/agents/lost.md", 4, "warning")
            assert "There is no provider comand. Did you mean command?" in problem.words

        play(story)

    def test_an_unknown_agent_is_refused_with_the_near_miss(self, stage: Stage) -> None:
        """And with all that there are; one with a bad file is refused with what is wrong with it."""
        define(stage.repo, "broken", "---\nname: broken\n---\n")

        async def story() -> None:
            with pytest.raises(NotFound, match="No agent codr") as unknown:
                await give(stage, "It", "codr")
            with pytest.raises(BadInput, match=r"\.windlass/agents/broken\.md:2: role: is missing"):
                await give(stage, "It", "broken")
            assert unknown.value.hint == "Did you mean coder? The agents here are: coder, reviewer."
            assert await stage.store.read(lambda store: store.unfinished_tasks()) == []

        play(story)

    def test_the_same_name_in_another_project_is_another_agent(self, stage: Stage, tmp_path: Path) -> None:
        """The second one is told apart by its project's name; each keeps its id."""
        other = tmp_path / "Web Shop"
        subprocess.run(["git", "clone", "-q", str(stage.repo), str(other)], check=True)
        define(other, "coder", CODER)

        async def story() -> None:
            uuids = iter(["project-1", "project-2"])
            stage.engine.projects.uuid = lambda: next(uuids)
            _, first = await give(stage, "It")
            elsewhere = Order(path=str(other), title="It", agent="coder", provider="command", options={"command": "x"})
            ids = [(await stage.engine.tasks.add(elsewhere))[1].id for _ in range(2)]
            _, again = await give(stage, "More")

            assert (first.id, again.id, ids) == ("coder", "coder", ["coder@web-shop", "coder@web-shop"])

        play(story)


class TestOneAfterTheOther:
    def test_a_second_task_waits_until_the_first_has_landed(self, stage: Stage) -> None:
        """Others go on meanwhile; then it begins at the newest main, in the same place, with a new session."""

        async def story() -> None:
            first, _ = await give(stage, "First")
            second, _ = await give(stage, "Second")
            third, _ = await give(stage, "Third", "reviewer")
            await stage.move()
            states = [await state(stage, each) for each in (first, second, third)]
            assert states == [TaskState.ACTIVE, TaskState.OPEN, TaskState.ACTIVE]

            stage.check_with("")  # it is held at the gate: the agent is not free yet
            await stage.finish("coder", "a.txt", "a")
            await stage.move()
            assert [await state(stage, first), await state(stage, second)] == [TaskState.LANDING, TaskState.OPEN]

            stage.check_with("true")
            await stage.move()
            assert [await state(stage, first), await state(stage, second)] == [TaskState.DONE, TaskState.ACTIVE]
            assert (await stage.run_of("coder")).number == 2
            assert (await stage.worktree("coder") / "a.txt").exists()

            await stage.finish("coder", "b.txt", "b")
            await stage.move()
            assert await state(stage, second) is TaskState.DONE
            assert (await stage.change_of("coder")).landing
            assert (stage.repo / "b.txt").exists()
            coder = await stage.agent("coder")
            assert coder.retired_at is None
            (view,) = [each for each in await stage.engine.status.every() if each.agent.name == "coder"]
            assert view.status is Status.COMPLETED

        play(story)

    def test_what_a_failed_task_left_is_saved_and_told(self, stage: Stage) -> None:
        """The next one begins without it, with its own count of tries, and `doctor` finds nothing missing."""

        async def story() -> None:
            stage.limit(retries=0, reminders=0)
            first, _ = await give(stage, "First")
            await stage.move()
            await stage.commit("coder", "half.txt", "half")
            await stage.exit("coder", 1)
            await stage.move()
            assert await state(stage, first) is TaskState.FAILED

            stage.limit(retries=1)
            second, _ = await give(stage, "Second")
            await stage.move()
            assert not (await stage.worktree("coder") / "half.txt").exists()
            await stage.exit("coder", 1)
            await stage.move()
            assert (await stage.run_of("coder")).number == 3  # it was tried again

            page = await stage.engine.status.page("coder")
            assert ["is saved as refs/windlass/rescue/coder/1/tree" in report.body for report in page.reports] == [True]
            assert await state(stage, second) is TaskState.ACTIVE
            (item,) = [each for each in (await stage.engine.rescue.every()).items if each[0].saved.removed]
            assert item[1].files == ("half.txt",)
            findings = [finding async for finding in stage.engine.audit.findings(list)]
            assert [finding.detail for finding in findings if not finding.ok] == []

        play(story)

    def test_stopping_it_ends_what_waits_too(self, stage: Stage) -> None:
        """Nothing starts behind the back of whoever said stop; a later task does."""

        async def story() -> None:
            tasks = [(await give(stage, title))[0] for title in ("First", "Second")]
            await stage.move()
            assert await stage.engine.runs.stop("coder", "stopped by hand")
            await stage.move()
            assert [await state(stage, task) for task in tasks] == [TaskState.CANCELLED] * 2
            assert not await stage.engine.runs.stop("coder", "again")

            later, _ = await give(stage, "Later")
            await stage.move()
            assert await state(stage, later) is TaskState.ACTIVE

        play(story)

    def test_one_at_work_cannot_change_its_provider(self, stage: Stage) -> None:
        """Its session belongs to the one it was begun with."""

        async def story() -> None:
            first, _ = await give(stage, "First")
            with pytest.raises(Conflict, match="works on t1"):
                await give(stage, "Second", command="another")
            await stage.move()
            await stage.engine.runs.stop("coder", "stopped")
            await stage.move()
            assert await state(stage, first) is TaskState.CANCELLED
            _, coder = await give(stage, "Second", command="another")
            assert coder.options == {"command": "another"}

        play(story)

    def test_a_question_of_the_first_is_answered_while_a_second_waits(self, stage: Stage) -> None:
        """The answer goes to the task that asked."""

        async def story() -> None:
            first, _ = await give(stage, "First")
            second, _ = await give(stage, "Second")
            await stage.move()
            await stage.signal("coder", '{"status": "questions", "questions": ["Which?"]}')
            await stage.exit("coder")
            await stage.move()
            assert [await state(stage, each) for each in (first, second)] == [TaskState.WAITING, TaskState.OPEN]

            await stage.engine.talk.answer("coder", ["The blue one."])
            await stage.move()

            run = await stage.run_of("coder")
            assert run.task == first.id
            assert "The blue one." in stage.prompt_of(run)
            assert "You are Senior developer for the repo project." in stage.prompt_of(run)

        play(story)


class TestPrompt:
    def test_it_is_told_who_and_where_it_is(self, stage: Stage) -> None:
        """Its role, its worktree and never the user's checkout, the files of main, its own words, the project's."""
        (stage.repo / ".windlass/WORKER.md").write_text("Speak plainly.")

        async def story() -> None:
            await give(stage, "First")
            await stage.move()
            text = stage.prompt_of(await stage.run_of("coder"))

            assert "You are Senior developer for the repo project." in text
            assert f"Path: {await stage.worktree('coder')}\nUUID: project-1" in text
            assert "<project_structure>\nREADME.md\n</project_structure>" in text
            assert "<agent_instructions>\nWork on repo.\n</agent_instructions>" in text
            assert "<project_rules>\nSpeak plainly.\n</project_rules>" in text
            assert '{"coder": {"status": "completed"}}' in text
            assert str(stage.repo) not in text

        play(story)

    def test_a_provider_that_takes_it_apart_is_told_who_it_is_in_every_run(self, stage: Stage) -> None:
        """By its own flag and not in the prompt, also in a later run; people can read it beside the prompt."""

        async def story() -> None:
            stage.add(CHOOSY)
            await give(stage, "First", provider="choosy", options={})
            await stage.move()
            for _ in range(2):
                run = await stage.run_of("coder")
                _, flag, system = stage.processes.started[run.id].launch.argv
                assert (flag, "You are Senior developer" in system) == ("--system", True)
                assert (stage.home / "runs" / run.id / "system.md").read_text() == system
                assert "Senior developer" not in stage.prompt_of(run)
                stage.processes.exit(run.id, 0)
                await stage.move()
            assert run.number == 2

        play(story)

    def test_its_own_entry_in_the_status_file_is_its_signal(self, stage: Stage) -> None:
        """Completed means done; an entry from an earlier run does not count."""

        async def story() -> None:
            await give(stage, "First")
            await stage.move()
            await stage.commit("coder", "a.txt", "a")
            status = await stage.worktree("coder") / ".windlass/process-status.json"
            status.write_text(json.dumps({"coder": {"status": "completed", "result": "Built."}}))
            await stage.exit("coder")
            await stage.move()

            run = await stage.run_of("coder")
            assert (run.outcome, run.result) == (Outcome.DONE, "Built.")
            assert "clean tree" in run.evidence
            assert (stage.repo / "a.txt").exists()

        play(story)

    def test_what_others_write_into_the_projects_status_is_overwritten(self, stage: Stage) -> None:
        """It is a mirror: no entry that anyone puts there is believed, and none stays."""
        (stage.repo / ".windlass/.gitignore").write_text("*\n")
        status = stage.repo / ".windlass/process-status.json"

        async def story() -> None:
            await give(stage, "First")
            await stage.move()
            status.write_text(json.dumps({"coder": {"status": "completed"}}))
            await stage.move()

            assert json.loads(status.read_text())["coder"]["status"] == "running"
            assert (await stage.run_of("coder")).live

        play(story)


class TestSetup:
    def test_a_worktree_is_made_ready_before_the_agent_starts(self, stage: Stage) -> None:
        """What it is given is there, is no work of the agent's, and the set-up has run; a note says what is missing."""
        (stage.repo / ".env").write_text("KEY=value\n")
        setting(stage, copy=(".env", "gone"), setup="cp .env made; echo ready on $WINDLASS_PORT")

        async def story() -> None:
            await give(stage, "First")
            await stage.move()
            tree = await stage.worktree("coder")
            launch = stage.processes.started[(await stage.run_of("coder")).id].launch

            assert (tree / ".env").read_text() == (tree / "made").read_text() == "KEY=value\n"
            assert launch.environment["WINDLASS_PORT"] == "20000"
            assert launch.environment["WINDLASS_PORTS"] == "20000-20009"
            page = await stage.engine.status.page("coder")
            assert page.setup == "note: gone was left out: it is not in your checkout\nready on 20000\n"
            (tree / "made").unlink()
            await stage.finish("coder", "a.txt", "a")
            await stage.move()
            assert (await stage.change_of("coder")).landing
            assert not (stage.repo / "gone").exists()

        play(story)
        landed = subprocess.run(["git", "ls-files"], cwd=stage.repo, capture_output=True, text=True, check=True)
        assert landed.stdout.split() == ["README.md", "a.txt"]

    def test_a_failed_set_up_is_named_before_the_agent_starts(self, stage: Stage) -> None:
        """The run has failed with the last lines, and no process was ever started."""
        setting(stage, setup="echo no such package; exit 3")

        async def story() -> None:
            task, _ = await give(stage, "First")
            await stage.move()

            run = await stage.run_of("coder")
            assert run.outcome is Outcome.FAILED
            assert "set-up of its worktree failed: exit code 3: no such package" in run.reason
            assert await state(stage, task) is TaskState.FAILED
            assert stage.processes.started == {}
            assert "no such package" in (await stage.engine.status.page("coder")).setup

        play(story)

    def test_a_set_up_is_ended_when_its_agent_is_stopped(self, stage: Stage) -> None:
        """At once, and the run counts as stopped."""
        setting(stage, setup="touch begun; sleep 60")

        async def story() -> None:
            task, _ = await give(stage, "First")
            await stage.engine.ticks["dispatch"].tick()
            begun = stage.home / "worktrees/project-1/coder/begun"
            async with asyncio.timeout(patience.seconds(20)):
                while not begun.exists():  # noqa: ASYNC110 - a file has no bell
                    await asyncio.sleep(0.01)
                await stage.engine.runs.stop("coder", "stopped by hand")
                await stage.engine.settle()

            run = await stage.run_of("coder")
            assert (run.outcome, run.reason) == (Outcome.STOPPED, "stopped by hand")
            assert await state(stage, task) is TaskState.CANCELLED

        play(story)

    def test_agents_at_work_never_share_a_port(self, stage: Stage) -> None:
        """Each keeps its own from task to task; those of a retired one are free again."""

        async def story() -> None:
            worker = await stage.order()
            await give(stage, "First")
            await give(stage, "Second", "reviewer")
            await stage.move()

            async def ports(name: str) -> str:
                launch = stage.processes.started[(await stage.run_of(name)).id].launch
                return launch.environment["WINDLASS_PORTS"]

            before = {each: await ports(each) for each in (worker, "coder", "reviewer")}
            assert sorted(before.values()) == ["20000-20009", "20010-20019", "20020-20029"]
            await stage.finish(worker, "w.txt", "w")
            await stage.finish("coder", "a.txt", "a")
            await stage.move()
            await give(stage, "Third")
            newcomer = await stage.order("More")
            await stage.move()
            assert [await ports("coder"), await ports(newcomer)] == [before["coder"], before[worker]]

        play(story)


class TestGuard:
    @pytest.mark.parametrize(
        "file", [".windlass/agents/coder.md", ".claude/agents/x.md", ".windlass/WORKER.md", ".windlass/prompts/role.md"]
    )
    def test_nobody_lands_what_agents_may_do(self, stage: Stage, file: str) -> None:
        """A change to an agent's file waits for a person, whatever its checks say."""

        async def story() -> None:
            name = await stage.order()
            await stage.move()
            tree = await stage.worktree(name)
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            await stage.finish(name, file, "---\nname: coder\nrole: x\npermissions: full\n---\n")
            await stage.move()

            change = await stage.change_of(name)
            assert change.reason == f"it changes {file}"
            assert change.landing is None

        play(story)


class TestPersistent:
    def test_it_is_started_again_ever_later_within_its_budget(self, stage: Stage) -> None:
        """After the usual tries others fail; it goes on with a rest, and gives up when the budget is used up."""
        define(stage.repo, "keeper", "---\nname: keeper\nrole: Keeps watch\npersistent: true\n---\n")

        async def story() -> None:
            stage.limit(retries=0, restarts=2)
            task, _ = await give(stage, "Keep watch", agent="keeper")
            await stage.move()
            for number, rest in ((1, 0), (2, 5)):
                await stage.exit("keeper", 1)
                await stage.move()
                stage.clock.time += rest
                await stage.move()
                assert (await stage.run_of("keeper")).number == number + 1
            await stage.exit("keeper", 1)
            await stage.move()
            assert await state(stage, task) is TaskState.FAILED

        play(story)

    def test_when_its_work_has_landed_it_is_idle_and_not_retired(self, stage: Stage) -> None:
        """It waits for what comes next, and no run is paid for meanwhile."""
        define(stage.repo, "keeper", "---\nname: keeper\nrole: Keeps watch\npersistent: true\n---\n")

        async def story() -> None:
            await give(stage, "Keep watch", agent="keeper")
            await stage.move()
            await stage.finish("keeper", "a.txt", "a")
            await stage.move()
            view = (await stage.engine.status.page("keeper")).view
            assert (view.status, view.agent.retired_at) == (Status.IDLE, None)
            stage.clock.time += 86_400
            await stage.move()
            assert (await stage.run_of("keeper")).number == 1

        play(story)
