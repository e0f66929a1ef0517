"""What an agent finds in its worktree to read only, its status entry, and the mirror of everyone's."""

from __future__ import annotations

import asyncio
import json
import os
from functools import partial
from pathlib import Path

import pytest

from windlass.core.errors import BadInput
from windlass.core.runs.signal import BadSignal, SaidDone, SaidError, Signal
from windlass.workdir import RunFolders

MANIFEST = {"agentId": "coder@shop", "agentName": "coder", "mode": "execute"}


@pytest.fixture
def folders(tmp_path: Path) -> RunFolders:
    return RunFolders(tmp_path / "home")


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def brief(folders: RunFolders, worktree: Path, run: str = "r1", **context: str) -> None:
    files = {name.replace("__", "/"): text for name, text in context.items()}
    asyncio.run(folders.brief(run, str(worktree), prompt="", manifest=MANIFEST, inputs={}, files={}, context=files))


class TestContext:
    def test_it_is_there_to_be_read(self, folders: RunFolders, worktree: Path) -> None:
        """Each file knows its agent, can't be written by mistake, and stands in the manifest."""
        brief(folders, worktree, tasks__t1="Before {AGENT_NAME}.", phases__t9="All.")

        context = worktree / ".windlass/input/context"
        assert (context / "tasks/t1").read_text() == "Before coder."
        assert (context / "tasks/t1").stat().st_mode & 0o777 == 0o444
        manifest = json.loads((worktree / ".windlass/input/manifest.json").read_text())
        assert manifest["contextFiles"] == ["context/phases/t9", "context/tasks/t1"]

    def test_where_there_is_nothing_there_is_no_folder(self, folders: RunFolders, worktree: Path) -> None:
        """What was true for an earlier run is gone, and a link in its place is not followed."""
        brief(folders, worktree, tasks__t1="Old.")
        brief(folders, worktree, "r2")
        assert not (worktree / ".windlass/input/context").exists()

        outside = worktree.with_name("outside")
        outside.mkdir()
        (outside / "keep").write_text("")
        (worktree / ".windlass/input/context").symlink_to(outside)
        brief(folders, worktree, "r3", tasks__t1="New.")

        assert [path.name for path in outside.iterdir()] == ["keep"]
        assert (worktree / ".windlass/input/context/tasks/t1").read_text() == "New."

    @pytest.mark.parametrize("name", ["..__x", "tasks__..__..__x", "__etc", "a b"])
    def test_a_name_that_leads_elsewhere_is_refused(self, folders: RunFolders, worktree: Path, name: str) -> None:
        """Nothing is written."""
        with pytest.raises(BadInput):
            brief(folders, worktree, **{name: "x"})


class TestStatusEntry:
    def put(self, worktree: Path, value: object) -> None:
        (worktree / ".windlass/process-status.json").write_text(json.dumps(value))

    def test_its_own_entry_is_its_signal(self, folders: RunFolders, worktree: Path) -> None:
        """By its name or its address; another's is not; a signal file counts more."""
        brief(folders, worktree)

        def look() -> Signal | None:
            return asyncio.run(folders.signal("r1", str(worktree)))

        self.put(worktree, {"reviewer": {"status": "completed"}, "coder": {"status": "running"}})
        assert look() is None
        self.put(worktree, {"coder@shop": {"status": "error", "error": "no network"}})
        assert look() == SaidError("no network")
        self.put(worktree, {"coder": {"status": "completed"}})
        assert look() == SaidDone("")
        (worktree / ".windlass/output/signal.json").write_text("half")
        assert isinstance(look(), BadSignal)

    def test_one_from_an_earlier_run_does_not_count(self, folders: RunFolders, worktree: Path) -> None:
        """It is kept among the outputs, where git does not see it."""
        brief(folders, worktree)
        self.put(worktree, {"coder": {"status": "completed"}})

        brief(folders, worktree, "r2")

        assert asyncio.run(folders.signal("r2", str(worktree))) is None
        assert {path.name for path in (worktree / ".windlass").iterdir()} == {"input", "output"}
        assert (worktree / ".windlass/output/process-status.before-r2.json").is_file()

    def test_whatever_stands_there_breaks_nothing(self, folders: RunFolders, worktree: Path) -> None:
        """A link, a pipe, a folder, a run that was never briefed."""
        brief(folders, worktree)
        file = worktree / ".windlass/process-status.json"
        secret = worktree.with_name("secret")
        secret.write_text('{"coder": {"status": "completed"}}')
        for make in (partial(file.symlink_to, secret), partial(os.mkfifo, file), file.mkdir):
            make()
            assert asyncio.run(folders.signal("r1", str(worktree))) is None
            file.rmdir() if file.is_dir() else file.unlink()
        self.put(worktree, {"coder": {"status": "completed"}})
        assert asyncio.run(folders.signal("r9", str(worktree))) is None


def test_a_mirror_that_someone_has_edited_is_known(folders: RunFolders, worktree: Path) -> None:
    """It shows what was written, until somebody writes there, or removes it."""
    (worktree / ".windlass").mkdir()
    top, name = str(worktree), "process-status.json"
    assert not folders.shows(top, name, "{}")
    asyncio.run(folders.mirror(top, name, "{}"))
    assert folders.shows(top, name, "{}")
    (worktree / ".windlass" / name).write_text("{} ")
    assert not folders.shows(top, name, "{}")
