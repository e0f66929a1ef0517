"""What every implementation of the `Workdirs` port promises: the real one on a disk, and the fake."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from fakes import FakeWorkdirs
from windlass.core.errors import Unavailable
from windlass.core.ports.workdirs import Workdirs
from windlass.core.runs.signal import BadSignal, SaidDone, SaidError, SaidQuestions
from windlass.core.runs.workdir import Briefing
from windlass.workdir import RunFolders

DONE = '{"status": "done", "result": "Fixed."}'
MANIFEST = {"agentId": "otter@pr-7", "agentName": "otter", "mode": "execute"}


class WorkdirStage(Protocol):
    """A port under test, one worktree and one checkout, and an agent's hands."""

    port: Workdirs
    worktree: str
    checkout: str

    def text(self, path: str) -> str: ...
    def give(self, signal: str) -> None: ...
    def write_status(self, text: str) -> None:
        """Write a status file, as some agents are told to."""
        ...

    def lose(self) -> None: ...
    def show(self) -> None:
        """Make the folder in the checkout that shows what happens."""
        ...


class Folders:
    """RunFolders below a folder."""

    def __init__(self, path: Path) -> None:
        self.port: Workdirs = RunFolders(path / "state")
        self.worktree, self.checkout = str(path / "tree"), str(path / "checkout")
        (path / "tree").mkdir()
        (path / "checkout").mkdir()

    def text(self, path: str) -> str:
        return Path(path).read_text()

    def give(self, signal: str) -> None:
        file = Path(self.worktree) / ".windlass/output/signal.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(signal)

    def write_status(self, text: str) -> None:
        (Path(self.worktree) / ".windlass/process-status.json").write_text(text)

    def lose(self) -> None:
        shutil.rmtree(self.worktree)

    def show(self) -> None:
        folder = Path(self.checkout) / ".windlass"
        folder.mkdir()
        (folder / ".gitignore").write_text("*\n")


class Memory:
    """FakeWorkdirs, with a worktree that is said to be there."""

    def __init__(self, path: Path) -> None:
        self.worktree, self.checkout = f"{path}/tree", f"{path}/checkout"
        self.folders = {self.worktree}
        self.fake = FakeWorkdirs(f"{path}/state", exists=self.folders.__contains__)
        self.port: Workdirs = self.fake

    def text(self, path: str) -> str:
        return self.fake.files[path]

    def give(self, signal: str) -> None:
        self.fake.give(self.worktree, signal)

    def write_status(self, text: str) -> None:
        self.fake.files[f"{self.worktree}/.windlass/process-status.json"] = text

    def lose(self) -> None:
        self.folders.clear()

    def show(self) -> None:
        self.fake.mirrored.add(self.checkout)


STAGES: dict[str, Callable[[Path], WorkdirStage]] = {"folders": Folders, "fake": Memory}


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> WorkdirStage:
    return STAGES[request.param](tmp_path)


def brief(stage: WorkdirStage, run: str = "r1") -> Briefing:
    return asyncio.run(
        stage.port.brief(
            run,
            stage.worktree,
            prompt="You are otter.",
            manifest=MANIFEST,
            inputs={"task.md": "For {AGENT_ID}."},
            files={"script": "- say: {AGENT_ID}"},
        )
    )


def test_a_run_finds_its_files(stage: WorkdirStage) -> None:
    """Prompt, provider files and inputs, each knowing its agent; the manifest lists what there is."""
    briefing = brief(stage)
    given = f"{stage.worktree}/.windlass/input"
    assert stage.text(briefing.prompt) == "You are otter."
    assert stage.text(briefing.files["script"]) == "- say: {AGENT_ID}"
    assert stage.text(f"{given}/task.md") == "For otter@pr-7."
    assert stage.text(f"{given}/expected-pwd.txt") == f"{stage.worktree}\n"
    assert json.loads(stage.text(f"{given}/manifest.json"))["files"] == ["expected-pwd.txt", "task.md"]
    assert briefing.signal == f"{stage.worktree}/.windlass/output/signal.json"


def test_each_run_has_files_of_its_own(stage: WorkdirStage) -> None:
    """What an earlier run was told stays readable."""
    first, second = brief(stage), brief(stage, "r2")
    assert first.prompt != second.prompt
    assert stage.text(first.prompt) == stage.text(second.prompt)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (DONE, SaidDone),
        ('{"status": "questions", "questions": ["Which?"]}', SaidQuestions),
        ('{"status": "done"', BadSignal),
        ("", BadSignal),
        ("[]", BadSignal),
    ],
)
def test_a_signal_is_understood_or_said_to_be_bad(stage: WorkdirStage, text: str, kind: type) -> None:
    """Without one there is nothing; what can't be read is not taken for silence."""
    brief(stage)
    assert asyncio.run(stage.port.signal("r1", stage.worktree)) is None
    stage.give(text)
    assert isinstance(asyncio.run(stage.port.signal("r1", stage.worktree)), kind)


def test_only_a_signal_given_in_this_run_counts(stage: WorkdirStage) -> None:
    """An older one is moved away when the next run is briefed, and kept."""
    brief(stage)
    stage.give(DONE)
    brief(stage, "r2")
    assert asyncio.run(stage.port.signal("r2", stage.worktree)) is None
    assert stage.text(f"{stage.worktree}/.windlass/output/signal.before-r2.json") == DONE


def test_a_worktree_that_is_gone_says_nothing(stage: WorkdirStage) -> None:
    """Neither a signal nor a briefing: the first is silence, the second may be tried again."""
    brief(stage)
    stage.give(DONE)
    stage.lose()
    assert asyncio.run(stage.port.signal("r1", stage.worktree)) is None
    with pytest.raises(Unavailable):
        brief(stage, "r2")


def test_what_a_run_may_only_read_is_listed_and_replaced_by_the_next(stage: WorkdirStage) -> None:
    """Its context is found by name; that of an earlier run is gone."""
    for run, context in (("r1", {"tasks/t1.md": "For {AGENT_NAME}.", "tasks/t2.md": ""}), ("r2", {"tasks/t2.md": "2"})):
        asyncio.run(
            stage.port.brief(run, stage.worktree, prompt="", manifest=MANIFEST, inputs={}, files={}, context=context)
        )
        given = f"{stage.worktree}/.windlass/input"
        listed = json.loads(stage.text(f"{given}/manifest.json"))["contextFiles"]
        assert listed == [f"context/{each}" for each in context]
        assert [stage.text(f"{given}/{each}").replace("otter", "{AGENT_NAME}") for each in listed] == [
            *context.values()
        ]
    with pytest.raises((OSError, KeyError)):
        stage.text(f"{stage.worktree}/.windlass/input/context/tasks/t1.md")


def test_an_agents_own_status_counts_where_there_is_no_signal(stage: WorkdirStage) -> None:
    """By its name or its id, in the run that it was written in."""
    brief(stage)
    stage.write_status('{"stranger": {"status": "completed"}}')
    assert asyncio.run(stage.port.signal("r1", stage.worktree)) is None
    stage.write_status('{"otter": {"status": "completed", "result": "It is done."}}')
    assert asyncio.run(stage.port.signal("r1", stage.worktree)) == SaidDone("It is done.")
    stage.give('{"status": "error", "error": "No."}')
    assert asyncio.run(stage.port.signal("r1", stage.worktree)) == SaidError("No.")
    brief(stage, "r2")
    assert asyncio.run(stage.port.signal("r2", stage.worktree)) is None


def test_several_worktrees_are_found_in_one_folder(stage: WorkdirStage) -> None:
    """A folder that leads to them is a place to be briefed in, and making it again changes nothing."""
    folder = f"{stage.worktree}-of-all"
    for _ in range(2):
        asyncio.run(stage.port.gather(folder, {"api": stage.worktree}))
    asyncio.run(stage.port.brief("r1", folder, prompt="", manifest=MANIFEST, inputs={"task.md": "It."}, files={}))
    assert stage.text(f"{folder}/.windlass/input/task.md") == "It."
    assert asyncio.run(stage.port.signal("r1", folder)) is None


def test_a_checkout_shows_what_happens_only_where_it_was_asked_to(stage: WorkdirStage) -> None:
    """No folder is made for it; where there is one, the file is put there and replaced."""
    assert not stage.port.has_mirrors(stage.checkout)
    with pytest.raises(Unavailable):
        asyncio.run(stage.port.mirror(stage.checkout, "status.json", "{}"))
    stage.show()
    assert stage.port.has_mirrors(stage.checkout)
    for text in ("{}\n", "[]\n"):
        assert not stage.port.shows(stage.checkout, "status.json", text)
        asyncio.run(stage.port.mirror(stage.checkout, "status.json", text))
        assert stage.port.shows(stage.checkout, "status.json", text)
        assert stage.text(f"{stage.checkout}/.windlass/status.json") == text
