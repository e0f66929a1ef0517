"""What every implementation of the `Chats` port promises: the real one on a disk, and the fake."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from fakes import FakeChats
from shortage import no_descriptors
from windlass.core.errors import BadInput, Unavailable
from windlass.core.messages.chat_file import BEFORE, Chats, Slice
from windlass.workdir.chatfile import ChatFiles

NAME = ".windlass/context/main/chat.md"


class ChatStage(Protocol):
    """A port under test, one folder, and someone else's hands."""

    port: Chats
    top: str

    def add(self, content: bytes) -> None:
        """Let a program add to the file."""
        ...

    def put(self, content: bytes) -> None:
        """Let a program write the file anew."""
        ...

    def text(self) -> bytes: ...


class Files:
    """ChatFiles below a folder."""

    def __init__(self, path: Path) -> None:
        self.port: Chats = ChatFiles()
        self.top = str(path)
        self.file = path / NAME
        self.file.parent.mkdir(parents=True)

    def add(self, content: bytes) -> None:
        with self.file.open("ab") as file:
            file.write(content)

    def put(self, content: bytes) -> None:
        self.file.write_bytes(content)

    def text(self) -> bytes:
        return self.file.read_bytes()


class Memory:
    """FakeChats."""

    def __init__(self, path: Path) -> None:
        self.fake = FakeChats()
        self.port: Chats = self.fake
        self.top = str(path)

    def add(self, content: bytes) -> None:
        self.fake.write(self.top, NAME, content)

    def put(self, content: bytes) -> None:
        self.fake.write(self.top, NAME, content, add=False)

    def text(self) -> bytes:
        return self.fake.files[self.top, NAME]


STAGES: dict[str, Callable[[Path], ChatStage]] = {"files": Files, "fake": Memory}


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> ChatStage:
    return STAGES[request.param](tmp_path)


def test_a_file_is_read_on_from_a_place(stage: ChatStage) -> None:
    """So much of it, and what stands before it, however far that goes back."""
    stage.put(b"x" * 2000 + b"hello")

    assert stage.port.look(stage.top, NAME, 2000, 100) == Slice(b"hello", b"x" * BEFORE, 2005)
    assert stage.port.look(stage.top, NAME, 2, 3) == Slice(b"xxx", b"xx", 2005)
    assert stage.port.look(stage.top, NAME, 0, 1) == Slice(b"x", b"", 2005)


def test_beyond_the_end_there_is_nothing(stage: ChatStage) -> None:
    """A file that was cut tells how long it is, and what is left before the place."""
    stage.put(b"abc")
    assert stage.port.look(stage.top, NAME, 5, 100) == Slice(b"", b"abc", 3)
    assert stage.port.look(stage.top, NAME, 3, 100) == Slice(b"", b"abc", 3)


def test_a_file_that_is_not_there_is_nothing(stage: ChatStage) -> None:
    """It is no error."""
    assert stage.port.look(stage.top, NAME, 0, 100) is None


def test_what_is_added_stands_at_the_end(stage: ChatStage) -> None:
    """The file is made if need be; what others have added stays."""

    async def story() -> None:
        assert await stage.port.append(stage.top, NAME, "one\n")
        stage.add(b"two\n")
        assert await stage.port.append(stage.top, NAME, "three \N{SNOWMAN} \ud800\n")

    asyncio.run(story())
    assert stage.text() == "one\ntwo\nthree \N{SNOWMAN} ?\n".encode()


def test_nothing_is_added_to_an_unfinished_line(stage: ChatStage) -> None:
    """Whoever writes it is not done."""
    stage.put(b"one\ntw")
    assert not asyncio.run(stage.port.append(stage.top, NAME, "three\n"))
    stage.add(b"o\n")
    assert asyncio.run(stage.port.append(stage.top, NAME, "three\n"))
    assert stage.text() == b"one\ntwo\nthree\n"


def test_a_line_that_nobody_will_end_is_ended(stage: ChatStage) -> None:
    """Where all that stands there was read as it is, and nothing was added since."""
    stage.put(b"one\ntw")
    assert not asyncio.run(stage.port.append(stage.top, NAME, "three\n", 4))
    assert asyncio.run(stage.port.append(stage.top, NAME, "three\n", 6))
    assert asyncio.run(stage.port.append(stage.top, NAME, "four\n", 13))
    assert stage.text() == b"one\ntw\nthree\nfour\n"


def test_a_file_is_only_replaced_if_it_is_what_was_expected(stage: ChatStage) -> None:
    """What someone has written meanwhile is not overwritten."""

    async def replaced(text: str, expecting: bytes | None) -> bool:
        return await stage.port.replace(stage.top, NAME, text, expecting=expecting)

    assert not asyncio.run(replaced("new", b"old"))
    assert asyncio.run(replaced("first", None))
    assert not asyncio.run(replaced("new", None))
    stage.add(b" and more")
    assert not asyncio.run(replaced("new", b"first"))
    assert not asyncio.run(replaced("new", b"first and less"))
    assert asyncio.run(replaced("new", b"first and more"))
    assert stage.text() == b"new"


def test_a_file_can_be_moved_away_and_kept(stage: ChatStage, tmp_path: Path) -> None:
    """Into a folder that is made if need be; where no file is, nothing is kept."""
    stage.put(b"abc\n")
    kept = tmp_path / "runs" / "r1"

    assert asyncio.run(stage.port.keep(stage.top, NAME, f"{kept}/chat.md"))
    assert stage.port.look(stage.top, NAME, 0, 100) is None
    assert stage.port.look(str(kept), "chat.md", 0, 100) == Slice(b"abc\n", b"", 4)
    assert not asyncio.run(stage.port.keep(stage.top, NAME, f"{kept}/other.md"))


def test_a_file_that_was_kept_before_stays(stage: ChatStage, tmp_path: Path) -> None:
    """A daemon that died after the move finds the file kept; a new file does not take its place."""
    kept = tmp_path / "runs" / "r1"
    for text in (b"first\n", b"second\n"):
        stage.put(text)
        assert asyncio.run(stage.port.keep(stage.top, NAME, f"{kept}/chat.md"))

    assert asyncio.run(stage.port.keep(stage.top, NAME, f"{kept}/chat.md"))
    assert stage.port.look(str(kept), "chat.md", 0, 100) == Slice(b"first\n", b"", 6)
    assert stage.port.look(str(kept), "chat.md.2", 0, 100) == Slice(b"second\n", b"", 7)


def test_what_is_no_notification_is_refused(stage: ChatStage) -> None:
    """With the error for what was written wrong."""
    with pytest.raises(BadInput):
        stage.port.notification("<task-notification>")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


class TestFiles:
    """What only real files can be."""

    def test_links_are_not_followed(self, files: Files, tmp_path: Path) -> None:
        """Neither the file's own, nor one of a folder above it; and nothing is written through them."""
        secret = tmp_path / "secret"
        secret.write_text("secret\n")
        files.file.symlink_to(secret)
        assert files.port.look(files.top, NAME, 0, 100) is None
        with pytest.raises(Unavailable):
            asyncio.run(files.port.append(files.top, NAME, "x\n"))
        files.file.unlink()
        files.file.parent.rmdir()
        files.file.parent.symlink_to(tmp_path)
        assert files.port.look(files.top, ".windlass/context/main/secret", 0, 100) is None
        with pytest.raises(Unavailable):
            asyncio.run(files.port.append(files.top, ".windlass/context/main/secret", "x\n"))
        assert secret.read_text() == "secret\n"

    def test_a_file_with_a_second_name_is_not_written(self, files: Files, tmp_path: Path) -> None:
        """It may be anyone's."""
        other = tmp_path / "other"
        other.write_text("mine\n")
        os.link(other, files.file)
        with pytest.raises(Unavailable):
            asyncio.run(files.port.append(files.top, NAME, "x\n"))
        assert other.read_text() == "mine\n"

    def test_a_link_in_the_way_is_replaced(self, files: Files, tmp_path: Path) -> None:
        """What it leads to stays as it is."""
        other = tmp_path / "other"
        other.write_text("mine")
        files.file.symlink_to(other)
        assert asyncio.run(files.port.replace(files.top, NAME, "new", expecting=None))
        assert (files.file.read_text(), other.read_text()) == ("new", "mine")

    def test_a_new_file_is_its_owners_alone(self, files: Files) -> None:
        """It shows what was said to one alone; whoever wants others to read it may say so, and that stays."""
        asyncio.run(files.port.append(files.top, NAME, "one\n"))
        assert files.file.stat().st_mode & 0o777 == 0o600
        files.file.chmod(0o660)
        asyncio.run(files.port.append(files.top, NAME, "two\n"))
        assert files.file.stat().st_mode & 0o777 == 0o660

    def test_a_folder_that_is_gone_is_not_made(self, files: Files, tmp_path: Path) -> None:
        """Nothing is written, and that is no trouble."""
        gone = str(tmp_path / "gone")
        assert not asyncio.run(files.port.append(gone, NAME, "x\n"))
        assert not asyncio.run(files.port.replace(gone, NAME, "x\n", expecting=None))
        assert not (tmp_path / "gone").exists()

    def test_pipes_and_folders_are_nothing(self, files: Files) -> None:
        """They neither block nor fail."""
        os.mkfifo(files.file)
        assert files.port.look(files.top, NAME, 0, 100) is None
        with pytest.raises(Unavailable):
            asyncio.run(files.port.append(files.top, NAME, "x\n"))
        files.file.unlink()
        files.file.mkdir()
        assert files.port.look(files.top, NAME, 0, 100) is None

    def test_names_can_not_lead_elsewhere(self, files: Files) -> None:
        """A name has no dots to climb by."""
        for name in ("../x", "a//b", "", "a/../b"):
            with pytest.raises(BadInput):
                files.port.look(files.top, name, 0, 1)

    def test_what_programs_add_at_the_same_moment_is_not_lost(self, files: Files) -> None:
        """Every line of everyone is there, whole."""

        def program(name: str) -> None:
            for number in range(200):
                files.add(f"{name}{number}\n".encode())

        others = [threading.Thread(target=program, args=(each,)) for each in "abc"]
        for other in others:
            other.start()

        async def ours() -> None:
            for number in range(200):
                await files.port.append(files.top, NAME, f"d{number}\n")

        asyncio.run(ours())
        for other in others:
            other.join()
        expected = {f"{name}{number}" for name in "abcd" for number in range(200)}
        assert sorted(files.text().decode().split()) == sorted(expected)

    def test_no_room_for_a_descriptor_is_not_a_missing_file(self, tmp_path: Path) -> None:
        """Nothing is known of a file that can't be opened now: nobody may believe that it is gone."""
        files = Files(tmp_path)
        files.put(b"[human]: hello\n")
        with no_descriptors(), pytest.raises(Unavailable, match="Too many open files"):
            files.port.look(files.top, NAME, 0, 100)

    def test_a_folder_can_be_followed_where_someone_listens(self, tmp_path: Path) -> None:
        """It must be there; else, or where nobody listens, it can't be told."""
        heard: list[Path] = []

        def listen(folder: Path, changed: Callable[[], None]) -> Callable[[], None]:
            heard.append(folder)
            return changed

        port = ChatFiles(listen)
        assert port.follow(str(tmp_path), lambda: None) is None
        (tmp_path / ".windlass").mkdir()
        assert port.follow(str(tmp_path), lambda: None) is not None
        assert heard == [tmp_path / ".windlass"]
        assert ChatFiles().follow(str(tmp_path), lambda: None) is None
        assert port.follow(f"{tmp_path}/{'x' * 5000}", lambda: None) is None
