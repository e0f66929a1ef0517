"""Stories of agents that a repository defines: they stay, take one task after the other, and are made ready."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from agent_stage import CODER, define, give, state
from stage import CHOOSY, Stage, play

from windlass.core.errors import BadInput, NotFound
from windlass.core.nouns.agent import Confinement, Permissions, Status
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState
from windlass.engine.projects.tasks import Order


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
