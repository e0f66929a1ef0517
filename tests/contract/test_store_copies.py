"""The verified copy of a store, and the way back to it."""

from __future__ import annotations

import asyncio
import shutil
import stat
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
from store_builders import a_task, putting
from store_files import a_store, fill

import patience
from windlass.core.errors import Conflict, NotFound, Unavailable
from windlass.core.nouns.task import Task
from windlass.store import copies, open_file, schema
from windlass.store.sqlite import SqliteStore

Story = Callable[[SqliteStore], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    asyncio.run(_whole(folder, story))


async def _whole(folder: Path, story: Story) -> None:
    store = a_store(folder)
    try:
        await story(store)
    finally:
        await store.close()


async def tasks_of(store: SqliteStore) -> set[str]:
    return {task.id for _, task in await store.read(lambda reading: reading.page(Task, after=0, limit=100))}


def copied(folder: Path) -> Path:
    """A store with three tasks, and its copy."""
    fill(folder)
    play(folder, lambda store: store.copy())
    return folder / "windlass.db"


def delete(store: Path) -> None:
    for file in store.parent.glob("windlass.db*"):
        if not file.name.endswith(".copy"):
            file.unlink()


def test_a_commit_lasts_when_the_power_fails(tmp_path: Path) -> None:
    """Each is synced to the disk before anyone is told of it: FULL, in the log that is written ahead."""
    with closing(open_file.open_writer(tmp_path / "windlass.db", schema.load(schema.MIGRATIONS))) as connection:
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()

    assert (synchronous, journal) == (2, "wal")


class TestCopy:
    def test_it_is_private_and_whole(self, tmp_path: Path) -> None:
        """Nothing half-made is left beside it."""
        copy = copies.copy_of(copied(tmp_path))

        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert not list(tmp_path.glob("*.partial"))

    def test_a_store_that_was_deleted_is_noticed_and_copied_whole(self, tmp_path: Path) -> None:
        """What the daemon has written since the last copy is in the open file."""
        path = copied(tmp_path)

        async def story(store: SqliteStore) -> None:
            await store.write(putting(a_task("t9")))
            assert not store.lost()
            delete(path)
            assert "was deleted while the daemon ran" in store.lost()
            await store.copy()

        play(tmp_path, story)
        copies.restore(path, tmp_path / "runs")

        async def look(store: SqliteStore) -> None:
            assert await tasks_of(store) == {"t1", "t2", "t3", "t9"}
            assert await store.verify() == ""

        play(tmp_path, look)

    def test_what_a_deleted_store_was_told_to_the_very_end_is_kept(self, tmp_path: Path) -> None:
        """Steps that still waited when the store was closed are in the copy, too."""
        path = copied(tmp_path)

        async def story(store: SqliteStore) -> None:
            delete(path)
            said = asyncio.ensure_future(store.write(putting(a_task("t9"))))
            said.add_done_callback(lambda done: done.result())
            await asyncio.sleep(0)  # it has begun, and nobody waits for it

        play(tmp_path, story)
        copies.restore(path, tmp_path / "runs")

        async def look(store: SqliteStore) -> None:
            assert await tasks_of(store) == {"t1", "t2", "t3", "t9"}

        play(tmp_path, look)

    def test_a_home_that_was_deleted_is_left_alone(self, tmp_path: Path) -> None:
        """Nothing is copied into a folder that has taken the place of the one with the store."""
        home = tmp_path / "home"
        home.mkdir()

        async def story(store: SqliteStore) -> None:
            shutil.rmtree(home)
            home.mkdir()

        fill(home)
        play(home, story)
        assert not list(home.iterdir())

    def test_the_loop_goes_on_while_a_copy_keeps_the_store_from_closing(self, tmp_path: Path) -> None:
        """Whoever closes the store waits for the copy beside the loop, not on it."""

        held, goes_on = threading.Event(), threading.Event()

        def copy(store: SqliteStore) -> bool:
            with store._copying:
                held.set()
                return goes_on.wait(patience.seconds(5))

        async def whole() -> bool:
            store = a_store(tmp_path)
            copying = asyncio.create_task(asyncio.to_thread(copy, store))
            await asyncio.to_thread(held.wait)
            closed = asyncio.create_task(store.close())
            await asyncio.sleep(0)
            goes_on.set()
            await closed
            return await copying

        assert asyncio.run(whole())

    def test_a_replaced_store_is_noticed(self, tmp_path: Path) -> None:
        """Another file in its place is not the one that is written."""
        path = copied(tmp_path)

        async def story(store: SqliteStore) -> None:
            path.rename(tmp_path / "moved")
            path.write_bytes(b"another")
            assert "was replaced while the daemon ran" in store.lost()

        play(tmp_path, story)

    def test_a_copy_that_knows_more_is_kept(self, tmp_path: Path) -> None:
        """A store that began anew does not overwrite the copy of the one before."""
        path = copied(tmp_path)
        before = copies.copy_of(path).read_bytes()
        delete(path)
        play(tmp_path, lambda store: store.copy())

        assert (tmp_path / "windlass.db.copy-1").read_bytes() == before


class TestRestore:
    def test_the_damaged_file_is_kept_aside(self, tmp_path: Path) -> None:
        """And the runs are named that the copy does not know."""
        path = copied(tmp_path)
        path.write_bytes(b"rubbish")
        (tmp_path / "runs" / "r7").mkdir(parents=True)

        restored = copies.restore(path, tmp_path / "runs")

        (aside,) = restored.aside
        assert Path(aside).read_bytes() == b"rubbish"
        assert restored.unknown_runs == ("r7",)

        async def look(store: SqliteStore) -> None:
            assert await tasks_of(store) == {"t1", "t2", "t3"}

        play(tmp_path, look)

    @pytest.mark.parametrize("broken", ["a folder", "a dangling link"])
    def test_a_store_that_cannot_be_opened_is_put_aside(self, tmp_path: Path, broken: str) -> None:
        """Not the copy is to blame for it."""
        path = copied(tmp_path)
        delete(path)
        path.mkdir() if broken == "a folder" else path.symlink_to(tmp_path / "nowhere")

        restored = copies.restore(path, tmp_path / "runs")

        (aside,) = restored.aside
        assert Path(aside).is_dir() == (broken == "a folder")

    def test_no_id_is_given_twice(self, tmp_path: Path) -> None:
        """Folders and refs may have the ids that were given after the copy."""
        path = tmp_path / "windlass.db"

        async def first(store: SqliteStore) -> None:
            assert await store.write(lambda writing: writing.next_id(Task)) == "t1"
            await store.copy()

        async def then(store: SqliteStore) -> None:
            assert await store.write(lambda writing: writing.next_id(Task)) == f"t{copies.IDS_LEFT_OUT + 2}"

        play(tmp_path, first)
        delete(path)
        copies.restore(path, tmp_path / "runs")
        play(tmp_path, then)

    def test_a_sound_store_is_not_replaced(self, tmp_path: Path) -> None:
        """It may know more than its copy."""
        path = copied(tmp_path)
        before = path.read_bytes()

        with pytest.raises(Conflict, match="is there and sound, with"):
            copies.restore(path, tmp_path / "runs")
        assert path.read_bytes() == before

    def test_a_damaged_or_missing_copy_is_refused(self, tmp_path: Path) -> None:
        """Nothing is touched then."""
        path = copied(tmp_path)
        delete(path)
        copies.copy_of(path).write_bytes(b"rubbish")
        with pytest.raises(Unavailable, match="is damaged"):
            copies.restore(path, tmp_path / "runs")
        copies.copy_of(path).unlink()
        with pytest.raises(NotFound, match="There is no copy"):
            copies.restore(path, tmp_path / "runs")
        assert not path.exists()


class TestRefusal:
    def test_a_home_that_had_a_store_does_not_begin_anew(self, tmp_path: Path) -> None:
        """Its hubs, worktrees, runs or copy show that there was one."""
        path, hubs = tmp_path / "windlass.db", tmp_path / "hubs"
        hubs.mkdir()
        copies.refuse_lost(path, [hubs])
        (hubs / "p1").mkdir()
        with pytest.raises(Unavailable, match="shows that there was one"):
            copies.refuse_lost(path, [hubs])

    def test_the_way_back_is_named(self, tmp_path: Path) -> None:
        """Where there is a copy."""
        path = copied(tmp_path)
        delete(path)
        with pytest.raises(Unavailable) as refused:
            copies.refuse_lost(path, [])
        assert "windlass doctor --restore" in refused.value.hint
