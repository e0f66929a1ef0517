"""The store on disk under pressure: many at once, a full disk, a long history."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from store_builders import a_change, a_delivery, a_message, a_run, a_task, an_agent, putting, python
from store_files import a_store, fill, tamper

import patience
from windlass.core.errors import Unavailable
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState
from windlass.core.ports.store import Writing
from windlass.store.sqlite import load_queries

SORTED = ("agents_named", "documents", "open_asks_of")
"""Questions about a few rows, which no index has in order."""
FIRST_LOOKS = """
import sys
from contextlib import suppress
from windlass.core import codec
from windlass.daemon.clock import SystemClock
from windlass.store import rows
from windlass.store.sqlite import SqliteStore

SqliteStore(sys.argv[1], SystemClock())
studied = []

def watch(frame, event, argument):
    if event == "call" and frame.f_globals.get("__name__", "").startswith("msgspec"):
        studied.append(frame.f_code.co_name)

sys.setprofile(watch)
for kind in rows.KINDS.values():
    with suppress(ValueError):
        codec.revive(kind, {})
sys.setprofile(None)
print(studied)
"""
"""Whether classes are still being studied when nouns are read."""


class TestTogether:
    def test_threads_that_read_the_first_noun_of_a_kind_find_its_class_studied(self, tmp_path: Path) -> None:
        """While one thread studies a class, another that reads a noun of it would take the whole process down."""
        told = python(FIRST_LOOKS, str(tmp_path / "windlass.db"))
        assert (told.stdout, told.returncode) == ("[]\n", 0), told.stderr

    def test_another_process_reads_while_we_write(self, tmp_path: Path) -> None:
        """A reader elsewhere sees whole transactions only, and disturbs nobody."""
        script = """
import sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
seen = 0
print("ready", flush=True)
while seen < 200:
    connection.execute("BEGIN")
    (events,) = connection.execute("SELECT count(*) FROM events").fetchone()
    (tasks,) = connection.execute("SELECT count(*) FROM tasks").fetchone()
    connection.execute("ROLLBACK")
    assert events >= seen and events * 2 == tasks, (events, tasks)
    seen = events
"""

        async def story() -> None:
            store = a_store(tmp_path)
            reader = await asyncio.create_subprocess_exec(
                sys.executable, "-c", script, str(tmp_path / "windlass.db"), stdout=asyncio.subprocess.PIPE
            )
            assert reader.stdout
            await asyncio.wait_for(reader.stdout.readline(), patience.seconds(30))

            def step(number: int) -> Callable[[Writing], object]:
                pair = a_task(f"t{number}"), a_task(f"u{number}")
                return lambda writing: writing.record("task.added", "pair", *pair)

            for number in range(200):
                await store.write(step(number))
            assert await asyncio.wait_for(reader.wait(), patience.seconds(30)) == 0
            await store.close()

        asyncio.run(story())

    def test_many_read_while_many_write(self, tmp_path: Path) -> None:
        """Questions are answered beside the writer, each from one moment."""

        async def story() -> None:
            store = a_store(tmp_path)

            async def write(who: int) -> None:
                for number in range(10):
                    await store.write(putting(a_task(f"t{who}-{number}")))

            async def read() -> None:
                for _ in range(10):
                    events, tasks = await store.read(
                        lambda reading: (reading.last_seq(), len(reading.unfinished_tasks()))
                    )
                    assert events == tasks

            await asyncio.gather(*(write(who) for who in range(10)), *(read() for _ in range(10)))
            assert await store.read(lambda reading: reading.last_seq()) == 100
            await store.close()

        asyncio.run(story())

    def test_two_stores_on_one_file_keep_one_journal(self, tmp_path: Path) -> None:
        """Should two ever write to the same file, numbers and chain still hold."""

        async def story() -> None:
            first, second = a_store(tmp_path), a_store(tmp_path)
            for number in range(20):
                await (first, second)[number % 2].write(putting(a_task(f"t{number}")))
            assert await first.read(lambda reading: reading.last_seq()) == 20
            assert await second.verify() == ""
            await first.close()
            await second.close()

        asyncio.run(story())

    def test_a_caller_that_gives_up_disturbs_nobody(self, tmp_path: Path) -> None:
        """A cancelled write is either whole or not there, and those behind it go on."""

        async def story() -> None:
            store = a_store(tmp_path)
            waiting = [asyncio.ensure_future(store.write(putting(a_task(f"t{number}")))) for number in range(20)]
            await asyncio.sleep(0)
            for each in waiting[::2]:
                each.cancel()
            results = await asyncio.gather(*waiting, return_exceptions=True)

            assert all(result is None for result in results[1::2])
            assert await store.read(lambda reading: reading.last_seq()) >= 10
            assert await store.verify() == ""
            await store.close()

        asyncio.run(story())

    def test_a_write_that_was_cancelled_before_its_turn_is_not_carried_out(self, tmp_path: Path) -> None:
        """Whoever gave up was told that it did not happen."""
        begun, go_on = threading.Event(), threading.Event()
        carried_out: list[str] = []

        def holds_up(_: Writing) -> None:
            begun.set()
            go_on.wait(patience.seconds(20))

        async def story() -> None:
            store = a_store(tmp_path)
            first = asyncio.ensure_future(store.write(holds_up))
            await asyncio.to_thread(begun.wait, patience.seconds(20))
            second = asyncio.ensure_future(store.write(lambda _: carried_out.append("second")))
            await asyncio.sleep(0)
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            third = asyncio.ensure_future(store.write(lambda _: carried_out.append("third")))
            await asyncio.sleep(0)
            go_on.set()
            await asyncio.gather(first, third)
            await store.close()

        asyncio.run(story())
        assert carried_out == ["third"]

    def test_closing_finishes_what_is_waiting(self, tmp_path: Path) -> None:
        """Whoever was let in before the door closed gets an answer."""

        async def story() -> None:
            store = a_store(tmp_path)
            waiting = [asyncio.ensure_future(store.write(putting(a_task(f"t{number}")))) for number in range(300)]
            await asyncio.sleep(0)
            await store.close()
            await asyncio.wait_for(asyncio.gather(*waiting), patience.seconds(30))

        asyncio.run(story())
        with closing(sqlite3.connect(tmp_path / "windlass.db")) as connection:
            assert connection.execute("SELECT count(*) FROM events").fetchone() == (300,)


class TestFullDisk:
    def test_a_full_disk_is_one_clear_error_and_then_goes_on(self, tmp_path: Path) -> None:
        """Without room everyone is told so and nothing is kept; with room again the journal goes on without a gap."""
        script = """
import asyncio, resource, sys
from store_builders import CountingClock, a_task, putting
from windlass.core.errors import Unavailable
from windlass.store.sqlite import SqliteStore

async def story():
    store = SqliteStore(sys.argv[1], CountingClock())
    await store.write(putting(a_task("t1")))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    steps = (store.write(putting(a_task(f"u{each}", brief="x" * 9000))) for each in range(20))
    results = await asyncio.gather(*steps, return_exceptions=True)
    assert any(isinstance(each, Unavailable) for each in results), results
    assert all(each is None or isinstance(each, Unavailable) for each in results), results
    told = next(each for each in results if each)
    assert sys.argv[1] in str(told) and told.hint, told
    kept = await store.read(lambda reading: (reading.last_seq(), len(reading.unfinished_tasks())))
    assert kept == (1 + results.count(None),) * 2, kept
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await store.write(putting(a_task("t2", brief="x" * 90_000)))
    assert await store.verify() == ""
    await store.close()

asyncio.run(story())
"""
        done = python(script, str(tmp_path / "windlass.db"))
        assert done.returncode == 0, done.stderr

    def test_a_step_cannot_overlook_that_the_database_failed_it(self, tmp_path: Path) -> None:
        """A step that swallows the database's error fails all the same, and only that step."""

        async def story() -> None:
            store = a_store(tmp_path)
            await store.write(putting(a_task("t1")))
            tamper(
                tmp_path,
                "CREATE TRIGGER bad BEFORE INSERT ON agents BEGIN SELECT RAISE(ABORT, 'no room'); END",
            )

            def step(writing: Writing) -> None:
                writing.record("task.added", "t2", a_task("t2"))
                with pytest.raises(Unavailable):
                    writing.record("agent.added", "coder", a_task("t3"), an_agent())
                with pytest.raises(Unavailable):
                    writing.record("task.added", "t4", a_task("t4"))

            results = await asyncio.gather(
                store.write(putting(a_task("t5"))),
                store.write(step),
                store.write(putting(a_task("t6"))),
                return_exceptions=True,
            )

            assert [type(result) for result in results] == [type(None), Unavailable, type(None)]
            tasks = await store.read(lambda reading: reading.unfinished_tasks())
            assert [task.id for task in tasks] == ["t1", "t5", "t6"]
            await store.close()

        asyncio.run(story())


class TestAtSize:
    @pytest.mark.parametrize(
        ("name", "index"),
        [
            ("ready_tasks", "tasks_ready"),
            ("unfinished_tasks", "tasks_unfinished"),
            ("task_of", "tasks_by_agent"),
            ("live_runs", "runs_live"),
            ("runs_of", "runs_by_agent"),
            ("latest_runs", "runs_by_agent"),
            ("agents_at_work", "agents_at_work"),
            ("agents_retired", "agents_retired"),
            ("agents_named", "agents_by_name"),
            ("undelivered", "deliveries_undelivered"),
            ("deliveries_of", "deliveries_by_run"),
            ("deliveries_unacked", "deliveries_unacked"),
            ("deliveries_to", "deliveries_by_reader"),
            ("receipts", "deliveries_by_message"),
            ("undelivered_to", "deliveries_owed"),
            ("readers_waiting", "deliveries_waking"),
            ("answer_to", "messages_answering"),
            ("asks_to", "deliveries_by_reader"),
            ("keyed", "messages_by_key"),
            ("said_newest", "messages_by_project"),
            ("said_oldest", "messages_by_project"),
            ("said_in_newest", "messages_in_channel"),
            ("said_in_oldest", "messages_in_channel"),
            ("documents", "sqlite_autoindex_documents_1"),
            ("revisions", "events_of_documents"),
            ("changes_queue", "changes_queue"),
            ("changes_ended", "changes_ended"),
            ("changes_of_task", "changes_by_task"),
            ("unfinished_tasks_of", "tasks_by_agent"),
            ("instances_live", "instances_live"),
            ("messages", "messages_by_channel"),
            ("open_asks", "messages_asking"),
            ("open_asks", "messages_answering"),
            ("open_asks_of", "messages_asked_by"),
            ("open_asks_in", "messages_by_channel"),
            ("project_at", "projects_by_path"),
            ("chunks", "chunks_by_run"),
            ("output_end", "chunks_by_run"),
            ("last_output", "chunks_by_run"),
            ("events", "INTEGER PRIMARY KEY"),
        ],
    )
    def test_every_question_has_its_index(self, tmp_path: Path, name: str, index: str) -> None:
        """No question walks a whole table, and none sorts what an index has in order."""
        fill(tmp_path)
        words = "agent agents after before channel limit offset path run runs sender task reader message key project"
        values = dict.fromkeys(
            [*words.split(), *"viewer home to begin length document question names first end".split()], "[]"
        )
        with closing(sqlite3.connect(tmp_path / "windlass.db")) as connection:
            plan = connection.execute("EXPLAIN QUERY PLAN " + load_queries()[name], values).fetchall()
        steps = [step[-1] for step in plan]
        assert any(index in step for step in steps), steps
        assert not [step for step in steps if "TEMP B-TREE" in step and name not in SORTED], steps
        walks = [step for step in steps if step.startswith("SCAN") and " USING " not in step]
        assert not [step for step in walks if "VIRTUAL TABLE" not in step], steps

    def test_questions_do_the_same_work_however_much_is_past(self, tmp_path: Path) -> None:
        """Ten times the history costs the open questions no more steps of SQLite's machine."""

        def past(numbers: range) -> Callable[[Writing], object]:
            def step(writing: Writing) -> None:
                for number in numbers:
                    writing.record(
                        "past.put",
                        f"{number}",
                        a_task(f"t{number}", state=TaskState.DONE),
                        a_task(f"w{number}", needs=("never",)),
                        a_run(f"r{number}", f"a{number}", outcome=Outcome.DONE),
                        an_agent(f"a{number}", created_at=float(number), retired_at=1.0),
                        a_message(f"m{number}"),
                        a_delivery(f"m{number}", receipt="acked"),
                        a_change(f"c{number}", state="landed"),
                    )

            return step

        asked = {"limit": 20, "before": 1e9, "after": 0, "agents": '["a7"]', "run": "r0", "answered": "m7"}
        asked |= {"most": 20, "project": "p", "channel": "", "home": "@i", "viewer": "dan", "to": "dan"}
        open_ones = ("ready_tasks", "live_runs", "undelivered", "changes_queue", "events", "longest_way", "asking")
        seen = ("seen_newest", "seen_oldest", "said_to_newest", "said_in_newest")
        names = (*open_ones, *seen, "latest_runs", "agents_retired")
        fill(tmp_path, past(range(1, 301)), putting(a_run("r0", starting_at=5.0)))
        few = work(tmp_path, names, asked)
        fill(tmp_path, past(range(301, 3001)))

        assert work(tmp_path, names, asked) == pytest.approx(few, abs=60)


def work(folder: Path, names: tuple[str, ...], values: dict[str, object]) -> dict[str, int]:
    """How many steps SQLite's machine takes for each question."""
    steps: dict[str, int] = {}
    with closing(sqlite3.connect(folder / "windlass.db")) as connection:
        for name in names:
            count = 0

            def tick() -> int:
                nonlocal count
                count += 1
                return 0

            connection.set_progress_handler(tick, 1)
            connection.execute(load_queries()[name], values).fetchall()
            connection.set_progress_handler(None, 0)
            steps[name] = count
    return steps
