"""An agent that is called again: it is what its file and the settings say today."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import play
from talk_room import AGENT, Room

from windlass.core.errors import BadInput
from windlass.core.nouns.run import Outcome, Run
from windlass.core.nouns.task import TaskState


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


def argv_of(room: Room, run: Run) -> str:
    return " ".join(room.processes.started[run.id].launch.argv)


async def called(room: Room, name: str) -> Run:
    """Call it, and let it do what it is told."""
    await room.send(to=(name,), body="Please look.")
    await room.move()
    run = await room.run_of(name)
    await room.signal(name)
    await room.exit(name)
    await room.move()
    return run


class TestCalledAgain:
    def test_it_is_started_as_the_settings_say_today(self, room: Room) -> None:
        """Another command, and what its file says now; who asks is shown the same."""

        async def story() -> None:
            await room.begin("coder")
            assert "claude-like" in argv_of(room, await called(room, "coder"))
            object.__setattr__(room.settings.settings.work, "command", "codex-like")
            (room.repo / ".windlass/agents/coder.md").write_text(
                AGENT.format(name="coder", more="permissions: full\n").replace("Do what", "Do exactly what")
            )
            second = await called(room, "coder")
            assert "codex-like" in argv_of(room, second) and "claude-like" not in argv_of(room, second)
            assert "Do exactly what you are told." in room.prompt_of(second) + room.system_of(second)
            agent = await room.agent("coder")
            assert (agent.options["command"], agent.permissions, agent.created_at) == ("codex-like", "full", 1000.0)

        play(story)

    def test_what_goes_on_goes_on_as_it_was_begun(self, room: Room) -> None:
        """In the middle of a task, its session is its provider's own."""

        async def story() -> None:
            await room.begin("coder")
            await room.send(to=("coder",), body="Please look.")
            await room.move()
            object.__setattr__(room.settings.settings.work, "command", "codex-like")
            await room.exit("coder", 1)
            await room.move()
            second = await room.run_of("coder")
            assert second.number == 2 and "claude-like" in argv_of(room, second)

        play(story)

    @pytest.mark.parametrize("gone", [True, False])
    def test_a_file_that_is_gone_or_broken_changes_nothing(self, room: Room, gone: bool) -> None:
        """It goes on as it was; `windlass agents` says what is wrong."""

        async def story() -> None:
            await room.begin("coder")
            await called(room, "coder")
            file = room.repo / ".windlass/agents/coder.md"
            file.unlink() if gone else file.write_text("---\nname: [\n---\n")
            second = await called(room, "coder")
            assert second.number == 2 and "claude-like" in argv_of(room, second)

        play(story)


class TestCalledWithoutAProvider:
    def test_the_error_names_the_file_that_could_say_it(self, room: Room) -> None:
        """Who sends a message has no flag for it, so the remedy is the agent's file or the setting."""

        async def story() -> None:
            await room.begin("coder")
            file = room.repo / ".windlass/agents/coder.md"
            file.write_text(file.read_text().replace("provider: command\n", ""))
            with pytest.raises(BadInput, match="coder has no provider, and none is set") as refused:
                await room.send(to=("coder",), body="Please look.")
            assert "Put `provider: NAME` into .windlass/agents/coder.md" in refused.value.hint
            assert "--command" not in refused.value.hint

        play(story)


class TestJustSpokenTo:
    def test_a_command_that_ends_well_has_heard_what_it_was_told(self, room: Room) -> None:
        """Nobody said that there is something to commit; who was given work has to commit it."""

        async def story() -> None:
            await room.begin("coder")
            sent = await room.send(to=("coder",), body="Hello.")
            await room.move()
            await room.exit("coder")
            await room.move()
            run, task = await room.run_of("coder"), await room.task_of("coder")
            assert (run.number, run.outcome, task.state) == (1, Outcome.DONE, TaskState.DONE)
            assert (await room.receipts(sent))["coder"] == ("read", "")
            given = await room.order("Do it")
            await room.move()
            await room.exit(given)
            await room.move()
            assert (await room.run_of(given)).number == 2, "it was reminded"

        play(story)

    def test_what_started_it_is_its_task_and_not_what_waited_there(self, room: Room) -> None:
        """A broadcast starts nobody, and says so; it is told with what does, whose words are the task's title."""

        async def story() -> None:
            await room.begin("coder", "tester")
            await room.send(to=("coder",), body="Begin.")
            await room.send(to=("tester",), body="Begin.")
            await room.move()
            cast = await room.send(everyone=True, body="Main is red.")
            outlook = {receipt.reader: words for receipt, words in await room.engine.outlook.of(cast.id)}
            assert outlook["coder"] == "waits: busy; it is told when it next works"
            await room.exit("coder")
            await room.move()
            assert (await room.receipts(cast))["coder"][0] == "pending"
            assert "mail waits" not in (await room.engine.status.page("coder")).view.evidence, "as it should be"
            await room.send(await room.speaker("tester"), body="@coder please look")
            await room.move()
            run, task = await room.run_of("coder"), await room.task_of("coder")
            assert (run.number, task.title) == (2, "@coder please look")
            assert "Main is red." in room.prompt_of(run)

        play(story)
