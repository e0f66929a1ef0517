"""The store on disk brings older files to its schema: it makes a copy first, and changes all or nothing."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from store_builders import a_message, a_run, a_task, an_instance, putting
from store_files import a_store, fill, plant, tamper

from windlass.core import codec
from windlass.core.errors import Unavailable
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run, RunTrouble, TroubleKind
from windlass.core.workflows.instance import Instance, InstanceEnding
from windlass.store import schema


def up_to(number: int, folder: Path) -> Path:
    """The migrations of an older version."""
    before = folder / "before"
    before.mkdir()
    for migration in sorted(schema.MIGRATIONS.glob("*.sql"))[:number]:
        shutil.copy(migration, before)
    return before


class TestMigrations:
    @pytest.fixture
    def later(self, tmp_path: Path) -> Path:
        """A later version's migrations: ours, and one more."""
        folder = tmp_path / "migrations"
        shutil.copytree(schema.MIGRATIONS, folder)
        number = len(schema.load(folder)) + 1
        (folder / f"{number:03}_add_colour.sql").write_text("ALTER TABLE tasks ADD COLUMN colour TEXT DEFAULT 'red';")
        return folder

    def test_a_copy_is_made_first(self, tmp_path: Path, later: Path) -> None:
        """Before a migration touches a store that holds something, a full copy of it stands beside it."""
        home = tmp_path / "home"
        home.mkdir()
        fill(home)
        number = len(schema.load(later))

        async def story() -> None:
            store = a_store(home, migrations=later)
            assert len(await store.read(lambda reading: reading.ready_tasks())) == 3
            await store.write(putting(a_task("t4")))
            assert await store.verify() == ""
            await store.close()

        asyncio.run(story())
        copy = home / f"windlass.db.before-{number:03}"
        assert sorted(path.name for path in home.iterdir()) == ["windlass.db", copy.name]
        assert copy.stat().st_mode & 0o777 == 0o600
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (3,)
            assert connection.execute("PRAGMA user_version").fetchone() == (number - 1,)
        with closing(sqlite3.connect(home / "windlass.db")) as connection:
            assert connection.execute("SELECT DISTINCT colour FROM tasks").fetchall() == [("red",)]
        with pytest.raises(Unavailable, match="newer"):
            a_store(home)

    def test_what_the_first_version_wrote_is_read(self, tmp_path: Path) -> None:
        """A row from before a column was there has nothing in it, and that is no damage."""
        home, first = tmp_path / "home", up_to(1, tmp_path)
        home.mkdir()
        asyncio.run(a_store(home, migrations=first).close())
        tamper(home, "INSERT INTO projects (id, name, path, main, added_at) VALUES ('p', 'shop', '/shop', 'main', 1.0)")

        async def story() -> None:
            store = a_store(home)
            [project] = await store.read(lambda reading: reading.projects())
            assert project == Project(id="p", name="shop", path="/shop", main="main", added_at=1.0)
            await store.close()

        asyncio.run(story())

    def test_an_instance_that_was_a_document_stays(self, tmp_path: Path) -> None:
        """A home from before instances had a table keeps them, and its journal still tells the truth of every row."""
        home, before = tmp_path / "home", up_to(13, tmp_path)
        home.mkdir()
        over = an_instance("a", ended_at=5.5, ending=InstanceEnding.STOPPED, reason="stopped by hand", gate=False)
        begun = an_instance("b", triggers={"coder@b": ("fix",)}, handoffs={"coder": ("tester",)}, heads={"x": "abc"})
        notes = Document(project="p", name="context/main/notes", body="…", author="human")

        def as_document(instance: Instance) -> Document:
            body = codec.encode(instance).decode()
            return Document(project="p", name=f"system/instance/{instance.name}", body=body, author="system")

        async def story() -> None:
            old = a_store(home, migrations=before)
            first = as_document(an_instance("a"))
            await old.write(putting(first, as_document(begun), notes))
            await old.write(putting(first.revise(as_document(over).body, author="system", now=6.0)))
            await old.close()

            store = a_store(home)
            assert await store.read(lambda reading: reading.instances()) == [over, begun]
            assert await store.read(lambda reading: reading.documents("p", "")) == [notes]
            assert await store.verify() == ""
            await store.write(putting(replace(begun, draining=True)))
            assert await store.verify() == ""
            await store.close()
            tamper(home, "UPDATE instances SET reason = 'all is done' WHERE name = 'a'")
            store = a_store(home)
            assert await store.verify() == "The instance p/a is not what event 4 says it became."
            await store.close()

        asyncio.run(story())

    def test_a_reminder_and_a_run_in_trouble_keep_their_meaning(self, tmp_path: Path) -> None:
        """A home from before these names keeps its reminders and troubles, and its journal tells the truth of both."""
        home, before = tmp_path / "home", up_to(14, tmp_path)
        home.mkdir()
        asyncio.run(a_store(home, migrations=before).close())
        said = a_message("m1", kind=Kind.REMINDER)
        ran = a_run("r1", trouble=RunTrouble(TroubleKind.QUOTA, "resets 8pm", 9.5))
        in_trouble = {"noun": "run", **codec.plain(ran)}
        in_trouble["hitch"] = in_trouble.pop("trouble")
        plant(home, {"noun": "message", **codec.plain(said), "kind": "nudge", "place": 1}, in_trouble)

        async def story() -> None:
            store = a_store(home)
            assert await store.read(lambda reading: reading.find(Message, "m1")) == said
            assert await store.read(lambda reading: reading.find(Run, "r1")) == ran
            assert await store.verify() == ""
            await store.close()

        asyncio.run(story())

    def test_a_position_that_was_a_document_stays(self, tmp_path: Path) -> None:
        """A home from before positions had a table keeps them, and nobody misses their documents in its journal."""
        home, before = tmp_path / "home", up_to(15, tmp_path)
        home.mkdir()
        places = ["system/chat/coder", "system/notes/main", "ports/coder", "radar/coder/tester"]
        names = [*places, "setup/coder", "context/main/notes"]

        async def story() -> None:
            old = a_store(home, migrations=before)
            for name in names:
                first = Document(project="p", name=name, body="old", author="system")
                await old.write(putting(first))
                await old.write(putting(first.revise(f"now {name}", author="system", now=2.0)))
            await old.close()

            store = a_store(home)
            kept = await store.read(lambda reading: [reading.position(f"p/{name}") for name in names])
            assert kept == [*(f"now {place}" for place in places), "", ""]
            rest = await store.read(lambda reading: reading.documents("p", ""))
            assert [(document.name, document.revision) for document in rest] == [("setup/coder", 2), (names[-1], 2)]
            assert await store.verify() == ""
            await store.close()

        asyncio.run(story())

    def test_the_copy_brings_the_store_back(self, tmp_path: Path, later: Path) -> None:
        """Put in the store's place, the copy opens with the version that wrote it."""
        home = tmp_path / "home"
        home.mkdir()
        fill(home)
        asyncio.run(a_store(home, migrations=later).close())
        (copy,) = home.glob("*.before-*")
        copy.replace(home / "windlass.db")

        async def story() -> None:
            store = a_store(home)
            assert await store.verify() == ""
            await store.close()

        asyncio.run(story())

    def test_a_new_store_needs_no_copy(self, tmp_path: Path, later: Path) -> None:
        """Where there is nothing to lose, nothing is copied; and an up-to-date store is left alone."""
        home = tmp_path / "home"
        home.mkdir()
        for _ in range(2):
            asyncio.run(a_store(home, migrations=later).close())

        assert [path.name for path in home.iterdir()] == ["windlass.db"]

    def test_a_migration_that_fails_changes_nothing(self, tmp_path: Path, later: Path) -> None:
        """A migration is all or nothing, and its error names it."""
        home = tmp_path / "home"
        home.mkdir()
        fill(home)
        (broken,) = later.glob("*_add_colour.sql")
        broken.write_text("CREATE TABLE half (a);\nINSERT INTO nowhere VALUES (1);")

        with pytest.raises(Unavailable, match=r"add_colour.*nowhere"):
            a_store(home, migrations=later)

        with closing(sqlite3.connect(home / "windlass.db")) as connection:
            assert connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'half'").fetchall() == []
        asyncio.run(a_store(home).close())

    def test_a_gap_in_the_numbers_is_refused(self, tmp_path: Path, later: Path) -> None:
        """Migrations without a gap only: nobody guesses an order."""
        (later / "907_late.sql").write_text("SELECT 1;")
        with pytest.raises(Unavailable, match="numbered"):
            a_store(tmp_path, migrations=later)
