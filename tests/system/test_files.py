"""Files in a folder that an agent can write: what is opened, what is refused, and that a write is one step."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from shortage import no_descriptors
from windlass.core.errors import Unavailable
from windlass.system.files import NotPlain, exists, open_file, open_folder, read_file, remove, replace_file, write_whole


def plant(place: Path, kind: str, outside: Path) -> None:
    """Put something that is not a plain file at a place."""
    if kind == "a symbolic link":
        place.symlink_to(outside)
    elif kind == "a pipe":
        os.mkfifo(place)
    elif kind == "a folder":
        place.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(place))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a file, beside the one that is worked in."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    return folder


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "top").mkdir()
    return tmp_path / "top"


class TestOpening:
    def test_a_name_that_the_system_refuses_is_not_called_another_kind(self, top: Path) -> None:
        """No right, a bad disk or a name too long is the system's word: nobody is told to remove a link."""
        with open_folder(top) as where, pytest.raises(OSError, match="too long") as refused:
            read_file(where, "n" * 300, 10)
        assert not isinstance(refused.value, NotPlain)

    def test_another_kind_says_so_wherever_the_reason_is_shown(self, top: Path) -> None:
        """Sentences made from `strerror` name the kind, too."""
        (top / "name").mkdir()
        with open_folder(top) as where, pytest.raises(NotPlain) as refused:
            read_file(where, "name", 10)
        assert refused.value.strerror == "it is a folder"

    @pytest.mark.parametrize("kind", ["a symbolic link", "a pipe", "a folder", "a socket"])
    def test_only_a_plain_file_is_read(self, top: Path, outside: Path, kind: str) -> None:
        """Anything else is refused at once, and named."""
        plant(top / "name", kind, outside / "kept")
        with open_folder(top) as where, pytest.raises(NotPlain, match=f"it is {kind}"):
            read_file(where, "name", 10)

    @pytest.mark.parametrize("kind", ["a symbolic link", "a pipe", "a socket"])
    def test_only_a_folder_is_entered(self, top: Path, outside: Path, kind: str) -> None:
        """A link is refused at the top, in the middle and at the end."""
        (top / "one").mkdir()
        plant(top / "one" / "two", kind, outside)
        for parts in (("one", "two"), ("one", "two", "three")):
            with pytest.raises(NotPlain, match=f"two is {kind}"), open_folder(top, *parts, make=True):
                pass
        with pytest.raises(NotPlain, match=kind), open_folder(top / "one" / "two"):
            pass
        assert [path.name for path in outside.iterdir()] == ["kept"]

    def test_a_read_is_bounded(self, top: Path) -> None:
        """No more than was asked for comes back."""
        (top / "long").write_bytes(b"x" * 100)
        with open_folder(top) as where:
            assert read_file(where, "long", 7) == b"x" * 7
        assert read_file(None, top / "long", 1000) == b"x" * 100

    def test_what_is_missing_is_said_to_be_missing(self, top: Path) -> None:
        """A missing file or folder is no surprise to a caller."""
        with open_folder(top) as where, pytest.raises(FileNotFoundError):
            read_file(where, "name", 10)
        with pytest.raises(FileNotFoundError), open_folder(top, "one"):
            pass

    def test_no_room_for_a_descriptor_is_not_another_kind_of_file(self, top: Path) -> None:
        """Nothing is known of a file that can't be opened for want of room: the caller is told, and tries again."""
        (top / "file").write_text("text")
        with open_folder(top) as where, no_descriptors():
            with pytest.raises(Unavailable, match="file could not be opened: Too many open files"):
                read_file(where, "file", 10)
            with pytest.raises(Unavailable, match="Too many open files"), open_folder(top):
                pass
        assert read_file(None, top / "file", 10) == b"text"

    def test_a_link_is_not_written_through(self, top: Path, outside: Path) -> None:
        """Opening to add follows no link either."""
        (top / "name").symlink_to(outside / "kept")
        with (
            open_folder(top) as where,
            pytest.raises(NotPlain, match="a symbolic link"),
            open_file(where, "name", os.O_WRONLY | os.O_APPEND | os.O_CREAT),
        ):
            pass
        assert (outside / "kept").read_text() == "kept"

    def test_no_handle_stays_open(self, top: Path, outside: Path) -> None:
        """Whatever is met, every folder and file is closed."""
        for kind in ("a symbolic link", "a pipe", "a folder", "a socket"):
            plant(top / kind, kind, outside)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for name in ("a symbolic link", "a pipe", "a folder", "a socket", "missing"):
            with pytest.raises(OSError), open_folder(top) as where, open_file(where, name):
                pass
            with pytest.raises(OSError), open_folder(top, name, "deeper"):
                pass
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class TestClearing:
    def test_what_is_in_the_way_of_a_folder_is_removed(self, top: Path, outside: Path) -> None:
        """A link is removed and what it leads to stays; a folder is kept with what is in it."""
        (top / "one").mkdir()
        (top / "one" / "old").write_text("old")
        (top / "one" / "two").symlink_to(outside)
        with open_folder(top, "one", "two", clear=True) as where:
            replace_file(where, "new", b"new")
        assert (top / "one" / "two" / "new").read_bytes() == b"new"
        assert not (top / "one" / "two").is_symlink()
        assert (top / "one" / "old").exists()
        assert [path.name for path in outside.iterdir()] == ["kept"]

    @pytest.mark.parametrize("kind", ["a symbolic link", "a pipe", "a folder", "a socket"])
    def test_anything_can_be_removed(self, top: Path, outside: Path, kind: str) -> None:
        """A folder goes with all in it, links in it as such; a second time there is nothing to do."""
        plant(top / "name", kind, outside)
        if kind == "a folder":
            (top / "name" / "link").symlink_to(outside)
        with open_folder(top) as where:
            assert exists(where, "name")
            remove(where, "name")
            remove(where, "name")
            assert not exists(where, "name")
        assert (outside / "kept").exists()


class TestReplacing:
    def test_a_link_is_replaced(self, top: Path, outside: Path) -> None:
        """The file that it leads to stays as it was."""
        (top / "name").symlink_to(outside / "kept")
        with open_folder(top) as where:
            replace_file(where, "name", b"new", mode=0o600)
        assert (top / "name").read_bytes() == b"new"
        assert (top / "name").stat().st_mode & 0o777 == 0o600
        assert (outside / "kept").read_text() == "kept"

    def test_a_folder_is_in_the_way(self, top: Path) -> None:
        """It is refused, and no draft is left."""
        (top / "name").mkdir()
        with open_folder(top) as where, pytest.raises(NotPlain, match="name is a folder"):
            replace_file(where, "name", b"new")
        assert [path.name for path in top.iterdir()] == ["name"]

    def test_a_whole_file_takes_the_place_of_another(self, top: Path, tmp_path: Path) -> None:
        """It has its own mode, and leaves no draft; a folder of ours may be reached by a link."""
        (top / "name").write_text("an older and longer text")
        (tmp_path / "link").symlink_to(top)
        write_whole(tmp_path / "link" / "name", b"new")
        assert (top / "name").read_bytes() == b"new"
        assert (top / "name").stat().st_mode & 0o777 == 0o600
        assert [path.name for path in top.iterdir()] == ["name"]
