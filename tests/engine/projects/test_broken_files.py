"""A fault in one project's files is that project's: whatever it is, the others go on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from stage import SetSettings, Stage, play

from windlass.core.errors import BadInput
from windlass.core.nouns.change import ChangeState
from windlass.core.settings.schema import Settings
from windlass.engine import background
from windlass.engine.projects.tasks import Order

FAULTS = [
    BadInput("config.toml: the line is wrong."),
    ValueError("Exceeds the limit (4300 digits) for integer string conversion"),
    OverflowError("int too large to convert to float"),
    RecursionError("maximum recursion depth exceeded"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    MemoryError(),
]


class OneBroken(SetSettings):
    """Settings of which those of one project can't be read."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.path = ""
        self.fault: Exception = BadInput("nothing is wrong")

    def at(self, path: str, /) -> Settings:
        if self.path and path == self.path:
            raise self.fault
        return super().at(path)


class TwoProjects(Stage):
    """One sound project, and beside it one whose files get broken."""

    def __init__(self, repo: Path, home: Path) -> None:
        super().__init__(repo, home)
        self.other = repo.with_name("other")
        subprocess.run(["git", "clone", "-q", str(repo), str(self.other)], check=True)
        self.settings: OneBroken = OneBroken(self.settings.settings)
        self.engine = self.build()

    async def ordered_at(self, place: Path) -> str:
        order = Order(path=str(place), title="Fix it", provider="command", options={"command": "claude-like"})
        return (await self.engine.tasks.add(order))[1].id

    def break_files(self, fault: Exception) -> None:
        self.settings.path, self.settings.fault = str(self.other), fault


@pytest.fixture
def two(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoProjects:
    """What fails is tried again and again here; the pauses between, of up to a minute, are no part of the story."""
    monkeypatch.setattr(background, "LONGEST_PAUSE", 0.0)
    return TwoProjects(repo, tmp_path / "home")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_the_other_projects_go_on(two: TwoProjects, fault: Exception) -> None:
    """Tasks start, runs are judged and changes land, whatever the reading of one project's files raises."""

    async def story() -> None:
        running, works = await two.ordered_at(two.other), await two.ordered_at(two.repo)
        await two.move()
        await two.ordered_at(two.other)
        begins = await two.ordered_at(two.repo)
        two.break_files(fault)
        await two.finish(works, "a.txt", "a\n")
        await two.finish(running, "b.txt", "b\n")
        await two.move(troubled=True)

        assert (await two.change_of(works)).state is ChangeState.LANDED
        assert (await two.run_of(begins)).live
        assert any(str(fault) in trouble.message for trouble in two.engine.troubles.all())

    play(story)


def test_the_list_shows_a_fault_beside_the_agent_that_it_holds(two: TwoProjects) -> None:
    """The agents of other projects are listed as ever."""

    async def story() -> None:
        waits, begins = await two.ordered_at(two.other), await two.ordered_at(two.repo)
        two.break_files(FAULTS[0])

        shown = {view.agent.id: view.evidence for view in await two.engine.status.every()}

        assert shown == {waits: f"can't start: {FAULTS[0]}", begins: "about to start"}

    play(story)


def test_a_mended_file_counts_at_once(two: TwoProjects) -> None:
    """What waited begins when its project's files can be read again."""

    async def story() -> None:
        waits = await two.ordered_at(two.other)
        two.break_files(ValueError("Exceeds the limit"))
        await two.move(troubled=True)
        two.settings.path = ""
        await two.move(troubled=True)

        assert (await two.run_of(waits)).live

    play(story)
