"""Briefings and signals in worktrees where an agent may have planted anything."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from shortage import no_descriptors
from windlass.core.errors import BadInput, NotAllowed, Unavailable
from windlass.core.runs.signal import BadSignal, SaidDone, SaidError
from windlass.core.runs.workdir import Briefing
from windlass.workdir import RunFolders

MANIFEST = {"agentId": "otter@pr-7", "agentName": "otter", "mode": "execute"}
DONE = '{"status": "done", "result": "Fixed."}'


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    path = tmp_path / "work tree é"
    path.mkdir()
    return path


@pytest.fixture
def folders(tmp_path: Path) -> RunFolders:
    return RunFolders(tmp_path / "home")


def brief(folders: RunFolders, worktree: Path, run: str = "r1", **given: dict[str, str]) -> Briefing:
    known = {"inputs": {"task.md": "For {AGENT_NAME} ({AGENT_ID})."}, "files": {"script": "- say: {AGENT_ID}"}} | given
    return asyncio.run(folders.brief(run, str(worktree), prompt="You are otter.", manifest=MANIFEST, **known))


def put_signal(worktree: Path, text: str = DONE, *, below: str = "") -> Path:
    file = worktree / below / ".windlass/output/signal.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


class TestBriefing:
    def test_a_run_finds_its_files(self, folders: RunFolders, worktree: Path) -> None:
        """Prompt and provider files are in the run's folder, inputs in the worktree, each knowing its agent."""
        briefing = brief(folders, worktree)

        given = worktree / ".windlass/input"
        assert Path(briefing.prompt).read_text() == "You are otter."
        assert Path(briefing.files["script"]).read_text() == "- say: {AGENT_ID}"
        assert (given / "task.md").read_text() == "For otter (otter@pr-7)."
        assert (given / "expected-pwd.txt").read_text() == f"{worktree}\n"
        assert json.loads((given / "manifest.json").read_text()) == {
            **MANIFEST,
            "files": ["expected-pwd.txt", "task.md"],
            "contextFiles": [],
        }
        assert briefing.signal == str(worktree / ".windlass/output/signal.json")
        assert Path(briefing.signal).parent.is_dir()

    def test_only_we_can_read_a_runs_folder(self, folders: RunFolders, worktree: Path) -> None:
        """Folder 0700, files 0600."""
        briefing = brief(folders, worktree)

        assert Path(briefing.prompt).stat().st_mode & 0o777 == 0o600
        assert Path(briefing.prompt).parent.stat().st_mode & 0o777 == 0o700

    def test_the_manifest_is_the_last_to_be_written(self, folders: RunFolders, worktree: Path) -> None:
        """Who sees the manifest sees all that it lists."""
        brief(folders, worktree)
        given = worktree / ".windlass/input"
        times = {path.name: path.stat().st_mtime_ns for path in given.iterdir()}

        assert times.pop("manifest.json") >= max(times.values())

    def test_a_start_can_be_repeated(self, folders: RunFolders, worktree: Path) -> None:
        """After a crash the same briefing is written again, and leaves nothing else."""
        first = brief(folders, worktree)
        second = brief(folders, worktree)

        assert first == second
        assert len(list((worktree / ".windlass/input").iterdir())) == 3
        assert {path.name for path in Path(first.prompt).parent.iterdir()} == {"prompt.md", "script", "whose.json"}

    def test_the_projects_own_files_stay(self, folders: RunFolders, worktree: Path) -> None:
        """`.windlass` may be a folder of the repository already."""
        (worktree / ".windlass").mkdir()
        (worktree / ".windlass/config.toml").write_text("[checks]\n")

        brief(folders, worktree)

        assert (worktree / ".windlass/config.toml").read_text() == "[checks]\n"

    @pytest.mark.parametrize("run", ["../r1", "", "/tmp/x", "a/b", ".", ".."])
    def test_a_run_that_is_a_path_is_refused(self, folders: RunFolders, worktree: Path, run: str) -> None:
        """No name leads out of our home."""
        with pytest.raises(BadInput):
            brief(folders, worktree, run)

    @pytest.mark.parametrize("name", ["../x.md", "manifest.json", "expected-pwd.txt", ".x", "a/b"])
    def test_an_input_that_is_a_path_is_refused(self, folders: RunFolders, worktree: Path, name: str) -> None:
        """No input leads out of its folder or takes a name of ours; nothing is written."""
        with pytest.raises(BadInput):
            brief(folders, worktree, inputs={name: "x"})

        assert not (worktree / ".windlass").exists()

    def test_half_characters_do_not_stop_a_run(self, folders: RunFolders, worktree: Path) -> None:
        """What UTF-8 can't say becomes a question mark."""
        brief(folders, worktree, inputs={"task.md": "a\ud800b"})

        assert (worktree / ".windlass/input/task.md").read_text() == "a?b"


class TestPlanted:
    @pytest.mark.parametrize("place", [".windlass", ".windlass/input", ".windlass/output"])
    def test_a_linked_folder_is_not_written_through(self, folders: RunFolders, worktree: Path, place: str) -> None:
        """A folder that leads out of the worktree is named and left alone."""
        outside = worktree.parent / "outside"
        outside.mkdir()
        (outside / "signal.json").write_text(DONE)
        (worktree / place).parent.mkdir(exist_ok=True)
        (worktree / place).symlink_to(outside)

        with pytest.raises(NotAllowed, match=f"{Path(place).name} is a symbolic link"):
            brief(folders, worktree)

        assert [path.name for path in outside.iterdir()] == ["signal.json"]

    @pytest.mark.parametrize(
        ("plant", "what"), [(os.mkfifo, "a pipe"), (lambda path: path.write_text("x"), "a file")], ids=["pipe", "file"]
    )
    def test_what_is_no_folder_is_named(
        self, folders: RunFolders, worktree: Path, plant: Callable[[Path], object], what: str
    ) -> None:
        """A pipe does not make us wait."""
        plant(worktree / ".windlass")

        with pytest.raises(NotAllowed, match=rf"\.windlass is {what}"):
            brief(folders, worktree)

    @pytest.mark.parametrize("name", ["task.md", "manifest.json", "expected-pwd.txt"])
    def test_links_in_place_of_files_are_replaced(self, folders: RunFolders, worktree: Path, name: str) -> None:
        """The file that a link or a second name leads to keeps its text."""
        precious = worktree.parent / "precious"
        precious.write_text("mine")
        given = worktree / ".windlass/input"
        given.mkdir(parents=True)
        (given / name).symlink_to(precious)
        brief(folders, worktree)
        (given / name).unlink()
        (given / name).hardlink_to(precious)
        brief(folders, worktree)

        assert precious.read_text() == "mine"
        assert not (given / name).is_symlink()
        assert (given / name).read_text() != "mine"

    def test_a_folder_in_place_of_a_file_is_named(self, folders: RunFolders, worktree: Path) -> None:
        """What can't be replaced in one step is not removed by force."""
        (worktree / ".windlass/input/task.md/deep").mkdir(parents=True)

        with pytest.raises(NotAllowed, match=r"task\.md is a folder"):
            brief(folders, worktree)

        assert [path.name for path in (worktree / ".windlass/input").iterdir()] == ["task.md"]

    def test_a_lost_worktree_is_said(self, folders: RunFolders, worktree: Path) -> None:
        """No worktree: no briefing, and nothing made in its place."""
        worktree.rmdir()

        with pytest.raises(Unavailable, match="No such file"):
            brief(folders, worktree)

        assert not worktree.exists()


class TestSignal:
    def test_no_signal_is_none(self, folders: RunFolders, worktree: Path) -> None:
        """Before and after the briefing, and without a worktree."""
        assert asyncio.run(folders.signal("r1", str(worktree))) is None
        brief(folders, worktree)
        assert asyncio.run(folders.signal("r1", str(worktree))) is None
        assert asyncio.run(folders.signal("r1", str(worktree / "gone"))) is None

    def test_a_signal_is_read(self, folders: RunFolders, worktree: Path) -> None:
        """What the agent wrote is what we understand."""
        put_signal(worktree)

        assert asyncio.run(folders.signal("r1", str(worktree))) == SaidDone("Fixed.")

    def test_a_signal_in_the_workspace_folder_counts(self, folders: RunFolders, worktree: Path) -> None:
        """Some agents work one folder further down; the usual place wins."""
        put_signal(worktree, below="workspace")
        assert asyncio.run(folders.signal("r1", str(worktree))) == SaidDone("Fixed.")

        put_signal(worktree, '{"status": "error", "error": "No."}')
        assert asyncio.run(folders.signal("r1", str(worktree))) == SaidError("No.")

    def test_a_workspace_of_the_projects_own_is_no_signal(self, folders: RunFolders, worktree: Path) -> None:
        """A file or a link called workspace is nothing to us."""
        (worktree / "workspace").write_text("mine")
        assert asyncio.run(folders.signal("r1", str(worktree))) is None

        (worktree / "workspace").unlink()
        (worktree / "workspace").symlink_to(put_signal(worktree.parent / "other").parents[2])
        assert asyncio.run(folders.signal("r1", str(worktree))) is None

    @pytest.mark.parametrize("below", ["", "workspace"])
    def test_an_old_signal_does_not_count(self, folders: RunFolders, worktree: Path, below: str) -> None:
        """It is kept under another name, also when the start is repeated."""
        file = put_signal(worktree, below=below)
        brief(folders, worktree, "r2")
        assert asyncio.run(folders.signal("r2", str(worktree))) is None

        put_signal(worktree, "again", below=below)
        brief(folders, worktree, "r2")

        assert asyncio.run(folders.signal("r2", str(worktree))) is None
        assert (file.parent / "signal.before-r2.json").read_text() == DONE
        assert (file.parent / "signal.before-r2.json.2").read_text() == "again"

    @pytest.mark.parametrize("kind", ["link", "loop", "pipe", "folder", "socket"])
    def test_an_old_signal_of_any_kind_is_moved_away(self, folders: RunFolders, worktree: Path, kind: str) -> None:
        """Whatever it is, the next run begins without one, and nothing outside is touched."""
        outside = worktree.parent / "outside.json"
        outside.write_text(DONE)
        _plant(put_signal(worktree), kind, outside)

        brief(folders, worktree, "r2")

        assert asyncio.run(folders.signal("r2", str(worktree))) is None
        assert outside.read_text() == DONE

    @pytest.mark.parametrize(
        ("kind", "problem"),
        [
            ("link", "it is a symbolic link"),
            ("loop", "it is a symbolic link"),
            ("pipe", "it is a pipe"),
            ("folder", "it is a folder"),
            ("socket", "it is a socket"),
            ("huge", "it has more than 1000000 bytes"),
        ],
    )
    def test_what_is_no_file_is_a_bad_signal(
        self, folders: RunFolders, worktree: Path, kind: str, problem: str
    ) -> None:
        """Never followed, never waited for, never read whole."""
        outside = worktree.parent / "outside.json"
        outside.write_text(DONE)
        _plant(put_signal(worktree), kind, outside)

        found = asyncio.run(folders.signal("r1", str(worktree)))

        assert isinstance(found, BadSignal)
        assert found.problem == problem

    @pytest.mark.parametrize("place", [".windlass", ".windlass/output"])
    def test_a_signal_behind_a_link_is_a_bad_signal(self, folders: RunFolders, worktree: Path, place: str) -> None:
        """A folder that leads elsewhere is not entered."""
        put_signal(worktree)
        moved = worktree.parent / "moved"
        (worktree / place).rename(moved)
        (worktree / place).symlink_to(moved)

        assert asyncio.run(folders.signal("r1", str(worktree))) == BadSignal(f"{Path(place).name} is a symbolic link")

    @pytest.mark.parametrize("name", ["output/signal.json", "process-status.json"])
    def test_no_room_for_a_descriptor_is_neither_no_signal_nor_a_bad_one(
        self, folders: RunFolders, worktree: Path, name: str
    ) -> None:
        """Nothing is known of a signal that can't be looked for: a run is not judged by that."""
        brief(folders, worktree)
        (worktree / ".windlass" / name).parent.mkdir(parents=True, exist_ok=True)
        (worktree / ".windlass" / name).write_text("{}")

        async def story() -> None:
            with no_descriptors(), pytest.raises(Unavailable, match="Too many open files"):
                await folders.signal("r1", str(worktree))

        asyncio.run(story())

    def test_no_handles_stay_open(self, folders: RunFolders, worktree: Path) -> None:
        """Looking a hundred times, at good and bad, costs no file descriptor."""
        before = _handles()
        for kind in ("link", "pipe", "folder", "huge"):
            _plant(put_signal(worktree / kind), kind, worktree)
            for _ in range(25):
                asyncio.run(folders.signal("r1", str(worktree / kind)))

        assert _handles() == before


def _handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _plant(file: Path, kind: str, outside: Path) -> None:
    """Put something odd in place of a signal."""
    file.unlink()
    if kind == "link":
        file.symlink_to(outside)
    elif kind == "loop":
        file.symlink_to(file)
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        (file / "deep").mkdir(parents=True)
    elif kind == "socket":
        _socket_at(file)
    else:
        with file.open("wb") as sparse:
            sparse.truncate(50_000_000)


def _socket_at(file: Path) -> None:
    """Bound by a short path: the real one may be too long for a socket."""
    folder = os.open(file.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{file.name}")
    os.close(folder)


def test_a_mirror_is_only_written_where_init_made_a_folder_and_never_through_a_link(tmp_path: Path) -> None:
    """A repository without that folder stays as it is; a planted link is replaced, and a linked folder refused."""
    folders = RunFolders(tmp_path / "home")
    checkout = tmp_path / "repo"
    checkout.mkdir()
    assert not folders.has_mirrors(str(checkout))

    (checkout / ".windlass").mkdir()
    (checkout / ".windlass" / ".gitignore").write_text("*\n")
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (checkout / ".windlass" / "process-status.json").symlink_to(secret)
    assert folders.has_mirrors(str(checkout))
    asyncio.run(folders.mirror(str(checkout), "process-status.json", "{}"))
    assert (checkout / ".windlass" / "process-status.json").read_text() == "{}"
    assert secret.read_text() == "mine"

    (checkout / ".windlass").rename(tmp_path / "elsewhere")
    (checkout / ".windlass").symlink_to(tmp_path / "elsewhere")
    assert not folders.has_mirrors(str(checkout))
