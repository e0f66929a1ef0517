"""A worktree is made ready before its agent starts."""

from __future__ import annotations

import asyncio
import subprocess

from agent_stage import give, setting, state
from stage import Stage, play

import patience
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState
from windlass.core.runs.sandbox import DOOR, SOCKET
from windlass.core.runs.workdir import Site
from windlass.engine.confinement import Confinements


def test_a_set_up_does_not_reach_the_daemon(stage: Stage) -> None:
    """It runs code of the repository for nobody: neither the socket nor its folder is in its sandbox."""

    async def story() -> None:
        await give(stage, "First")
        await stage.move()
        agent, project = await stage.agent("coder"), await stage.engine.projects.at(str(stage.repo))
        site, provider = Site(agent, (project,)), stage.engine.ports.providers.get(agent.provider)
        around = Confinements(stage.engine.ports).around_setup(site, provider, worktree="/w")
        assert around.links == ()
        assert not [path for path in (*around.readable, *around.writable) if path.endswith((DOOR, SOCKET))]
        assert "/w" in around.writable

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
