"""What the store on disk promises beyond the common contract: its file, its faults, its speed at size."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from pathlib import Path

import pytest
from store_builders import a_task, putting, python
from store_files import OPEN, a_store, contents, fill, tamper, unprivileged

from windlass.core.errors import Unavailable
from windlass.core.nouns.run import Chunk
from windlass.core.nouns.task import Task


class TestFile:
    def test_reopening_finds_everything(self, tmp_path: Path) -> None:
        """What was written is there after closing, with its numbering and its home."""

        async def story() -> None:
            first = a_store(tmp_path)
            await first.write(lambda writing: putting(a_task(writing.next_id(Task)))(writing))
            await first.write(lambda writing: writing.append(Chunk("r1", 0, 1.0, b"x")))
            before = await first.read(lambda reading: (reading.events(after=0), reading.ready_tasks()))
            await first.close()

            second = a_store(tmp_path)
            assert second.home_id == first.home_id
            assert await second.read(lambda reading: (reading.events(after=0), reading.ready_tasks())) == before
            assert await second.write(lambda writing: writing.next_id(Task)) == "t2"
            event = await second.write(lambda writing: writing.append(Chunk("r1", 1, 1.0, b"y")))
            assert event.seq == 3
            assert await second.verify() == ""
            await second.close()

        asyncio.run(story())

    def test_the_file_is_the_owner_s_alone(self, tmp_path: Path) -> None:
        """Store, log and index have mode 0600, whatever the umask allows."""

        before = os.umask(0)
        try:
            store = a_store(tmp_path)
            asyncio.run(store.write(putting(a_task())))
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
            asyncio.run(store.close())
        finally:
            os.umask(before)

        assert modes == {"windlass.db": 0o600, "windlass.db-wal": 0o600, "windlass.db-shm": 0o600}
        assert [path.name for path in tmp_path.iterdir()] == ["windlass.db"]

    def test_a_path_may_have_any_characters(self, tmp_path: Path) -> None:
        """Question marks, hashes, percent signs, spaces and letters of any language are part of a name."""
        folder = tmp_path / "what? #1 100%41 naïve 🦦"
        folder.mkdir()

        fill(folder)

        assert [path.name for path in folder.iterdir()] == ["windlass.db"]

    def test_a_half_made_store_is_made_again(self, tmp_path: Path) -> None:
        """A first start that was killed leaves nothing that stops the next."""
        (tmp_path / "windlass.db.new").write_bytes(b"half")
        (tmp_path / "windlass.db.new-wal").write_bytes(b"half")

        fill(tmp_path)

        assert [path.name for path in tmp_path.iterdir()] == ["windlass.db"]

    def test_what_was_committed_survives_a_kill(self, tmp_path: Path) -> None:
        """A writer that is killed has lost nothing it was told is kept, and the next opening finds all of it."""
        script = """
import asyncio, os, signal, sys
from store_builders import CountingClock, a_task, putting, python
from windlass.store.sqlite import SqliteStore

async def story():
    store = SqliteStore(sys.argv[1], CountingClock())
    for number in range(1, 41):
        await store.write(putting(a_task(f"t{number}")))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(story())
"""
        done = python(script, str(tmp_path / "windlass.db"))
        assert done.returncode == -signal.SIGKILL

        async def story() -> None:
            store = a_store(tmp_path)
            assert await store.read(lambda reading: reading.last_seq()) == 40
            assert await store.verify() == ""
            await store.close()

        asyncio.run(story())


class TestRefusals:
    def refused(self, folder: Path, *words: str) -> None:
        """Opening says these words and the file's name, and leaves every byte as it was."""
        before = contents(folder)
        with pytest.raises(Unavailable) as caught:
            a_store(folder)
        assert str(folder / "windlass.db") in str(caught.value)
        assert all(word in str(caught.value) for word in words)
        assert caught.value.hint
        assert contents(folder) == before

    @pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 2\0" + b"x" * 4096, b"\0" * 8192])
    def test_not_a_database(self, tmp_path: Path, content: bytes) -> None:
        """A file that is something else, or empty, is kept and named."""
        (tmp_path / "windlass.db").write_bytes(content)

        self.refused(tmp_path, "is not a database")

    def test_damaged_header(self, tmp_path: Path) -> None:
        """A store whose first page is damaged is kept and named."""
        fill(tmp_path)
        path = tmp_path / "windlass.db"
        path.write_bytes(path.read_bytes()[:16] + b"\xff" * 84 + path.read_bytes()[100:])

        self.refused(tmp_path)

    @pytest.mark.parametrize("page", [1, 2, 20, -1])
    def test_damaged_pages(self, tmp_path: Path, page: int) -> None:
        """A store with rubbish in any page is kept and named."""
        fill(tmp_path)
        path = tmp_path / "windlass.db"
        content = bytearray(path.read_bytes())
        begin = 4096 * page % len(content)
        content[begin : begin + 4096] = b"\xa5" * 4096
        path.write_bytes(content)

        self.refused(tmp_path, "damaged")

    def test_cut_off(self, tmp_path: Path) -> None:
        """A store that has lost its end is kept and named."""
        fill(tmp_path)
        path = tmp_path / "windlass.db"
        path.write_bytes(path.read_bytes()[:-5000])

        self.refused(tmp_path, "damaged")

    def test_newer_schema(self, tmp_path: Path) -> None:
        """A store of a later version is left to that version."""
        fill(tmp_path)
        tamper(tmp_path, "PRAGMA user_version = 999")

        self.refused(tmp_path, "newer windlass", "999")

    def test_newer_schema_in_the_log(self, tmp_path: Path) -> None:
        """Also when the later version was killed before its log went into the file."""
        script = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA user_version = 999")
os._exit(0)
"""
        fill(tmp_path)
        assert python(script, str(tmp_path / "windlass.db")).returncode == 0
        assert (tmp_path / "windlass.db-wal").stat().st_size

        before = contents(tmp_path)
        with pytest.raises(Unavailable, match="999"):
            a_store(tmp_path)
        after = contents(tmp_path)
        for name in ("windlass.db", "windlass.db-wal"):
            assert after[name] == before[name]

    def test_foreign_database(self, tmp_path: Path) -> None:
        """A database of another program is not ours to write into."""
        tamper(tmp_path, "CREATE TABLE theirs (a)")

        self.refused(tmp_path, "another program")

    def test_not_a_file(self, tmp_path: Path) -> None:
        """A folder or a pipe in the store's place is refused at once, without waiting on it."""
        (tmp_path / "windlass.db").mkdir()
        self.refused(tmp_path, "not a regular file")
        (tmp_path / "windlass.db").rmdir()
        os.mkfifo(tmp_path / "windlass.db")
        with pytest.raises(Unavailable, match="not a regular file"):
            a_store(tmp_path)

    def test_missing_file_beside_its_log(self, tmp_path: Path) -> None:
        """A log without its store means that something was lost; a new store would drink from the old log."""
        (tmp_path / "windlass.db-wal").write_bytes(b"frames")

        self.refused(tmp_path, "missing")

    def test_no_folder(self, tmp_path: Path) -> None:
        """A home that is not there is not made by the store."""
        with pytest.raises(Unavailable, match="No such file"):
            a_store(tmp_path / "nowhere")
        assert contents(tmp_path) == {}

    def test_read_only_file(self) -> None:
        """A store that cannot be written is refused on opening, not on the first write."""
        with tempfile.TemporaryDirectory(dir=OPEN) as name:
            folder = Path(name)
            fill(folder)
            (folder / "windlass.db").chmod(0o444)
            with unprivileged(folder):
                self.refused(folder, "Permission denied")

    def test_unwritable_folder(self) -> None:
        """A new store in a folder that we may not write to is refused by name."""
        with tempfile.TemporaryDirectory(dir=OPEN) as name:
            folder = Path(name)
            with unprivileged(folder, mode=0o555):
                self.refused(folder, "denied")
            folder.chmod(0o755)


class TestTampering:
    @pytest.mark.parametrize(
        ("statements", "fault"),
        [
            (
                ["UPDATE events SET payload = replace(payload, 'Task t2', 'Task t!') WHERE seq = 2"],
                "Event 2 was changed",
            ),
            (["UPDATE events SET subject = 't9' WHERE seq = 3"], "Event 3 was changed"),
            (["UPDATE events SET time = time + 1 WHERE seq = 1"], "Event 1 was changed"),
            (["DELETE FROM events WHERE seq = 2"], "Event 2 is missing"),
            (["DELETE FROM events WHERE seq = 1"], "Event 1 is missing"),
            (["DELETE FROM events WHERE seq = 3"], "Event 3 is missing"),
            (["DELETE FROM events"], "Event 1 is missing"),
            (["UPDATE events SET seq = 9 WHERE seq = 3"], "Event 3 is missing"),
            (["UPDATE tasks SET state = 'done' WHERE id = 't2'"], "task t2 is not what event 2"),
            (["DELETE FROM tasks WHERE id = 't1'"], "task t1 is missing"),
            (["UPDATE tasks SET id = 't7' WHERE id = 't1'"], "task t7 stands"),
            (["UPDATE tasks SET state = 'lost' WHERE id = 't3'"], "task t3 cannot be read"),
            (["UPDATE events SET payload = '[1' WHERE seq = 2"], "Event 2 cannot be read"),
            (["UPDATE events SET payload = '[1]' WHERE seq = 2"], "Event 2 cannot be read"),
        ],
    )
    def test_a_changed_or_missing_row_is_found(self, tmp_path: Path, statements: list[str], fault: str) -> None:
        """Whoever changes the file behind our back is noticed, and told where."""

        async def story() -> None:
            store = a_store(tmp_path)
            await store.write(putting(a_task("t1"), a_task("t2"), a_task("t3")))
            assert await store.verify() == ""

            tamper(tmp_path, *statements)

            assert fault in await store.verify()
            await store.close()

        asyncio.run(story())

    def test_a_cut_end_stays_visible(self, tmp_path: Path) -> None:
        """Events cut off the end are still missed after more has been written."""
        fill(tmp_path)
        tamper(tmp_path, "DELETE FROM events WHERE seq = 3")

        async def story() -> None:
            store = a_store(tmp_path)
            await store.write(putting(a_task("t4")))
            assert "Event 3 is missing" in await store.verify()
            await store.close()

        asyncio.run(story())

    def test_a_long_journal_is_walked_by_pages(self, tmp_path: Path) -> None:
        """A fault beyond the first thousand events is found as well."""

        async def story() -> None:
            store = a_store(tmp_path)
            await store.write(putting(*(a_task(f"t{number}") for number in range(1, 2503))))
            assert await store.verify() == ""
            tamper(tmp_path, "UPDATE tasks SET title = 'x' WHERE id = 't2400'")
            assert "t2400" in await store.verify()
            tamper(tmp_path, "UPDATE events SET kind = 'x' WHERE seq = 2200")
            assert "Event 2200" in await store.verify()
            await store.close()

        asyncio.run(story())
