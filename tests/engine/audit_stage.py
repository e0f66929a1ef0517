"""A home with a past, looked at by the audit after something in it was broken."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stage import Stage, play

from fakes import FakeProcesses
from windlass.core.invariants import Finding
from windlass.engine.views.audit import LOOK_EVERY, Audit
from windlass.store.sqlite import SqliteStore

PERSON = ("-c", "user.name=Test Person", "-c", "user.email=person@example.com")


@dataclass(frozen=True)
class Past:
    """What has happened in a home: one agent landed, one was answered and landed, one failed, one still works."""

    folder: Path
    processes: FakeProcesses
    landed: str
    answered: str
    failed: str
    working: str

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def database(self) -> Path:
        return self.folder / "windlass.db"

    @property
    def hub(self) -> Path:
        return self.home / "hubs" / "project-1.git"

    def git(self, *words: str, at: Path | None = None) -> str:
        ran = subprocess.run(["git", *words], cwd=at or self.repo, capture_output=True, text=True, check=True)
        return ran.stdout.strip()


def make_past(folder: Path) -> Past:
    """Let it all happen."""
    repo = folder / "repo"
    repo.mkdir()
    for words in (["init", "-q", "-b", "main"], [*PERSON, "commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=repo, check=True)
    for key, value in (("user.name", "Test Person"), ("user.email", "person@example.com")):
        subprocess.run(["git", "config", key, value], cwd=repo, check=True)
    made: list[Past] = []

    async def story() -> None:
        made.append(await _live(folder))

    play(story)
    return made[0]


async def _live(folder: Path) -> Past:
    stage = Stage(folder / "repo", folder / "home")
    stage.store = SqliteStore(str(folder / "windlass.db"), stage.clock)
    stage.engine = stage.build()
    names = [await stage.order(each) for each in ("Land it", "Ask and land", "Fail", "Go on")]
    await stage.move()
    for number in range(3):
        for name in names:
            stage.processes.say((await stage.run_of(name)).id, f"line {number}\n".encode())
        await stage.move()
    await stage.finish(names[0], "a.txt", "a\n")
    await stage.signal(names[1], '{"status": "questions", "questions": [{"id": "q1", "question": "Which?"}]}')
    await stage.exit(names[1])
    await stage.signal(names[2], '{"status": "error", "error": "It is too hard."}')
    await stage.exit(names[2])
    await stage.move()
    await stage.engine.talk.answer(names[1], ["The other one."])
    await stage.move()
    await stage.finish(names[1], "b.txt", "b\n")
    await stage.move()
    await stage.engine.close()
    await stage.store.close()
    return Past(folder, stage.processes, *names)


class Waits:
    """Pauses that take no time; they are counted, and something may happen in them."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, seconds: float) -> None:
        assert seconds == LOOK_EVERY
        self.count += 1
        await asyncio.sleep(0)


def look(
    past: Past, folder: Path, *tampering: str, rivals: Sequence[str] = (), waits: Waits | None = None
) -> dict[str, Finding]:
    """What the audit finds in a copy of the store that was changed by these statements."""
    database = folder / "copy.db"
    shutil.copy2(past.database, database)
    with closing(sqlite3.connect(database)) as connection:
        for each in tampering:
            assert connection.execute(each).rowcount, f"nothing was changed: {each}"
        connection.commit()
    found: list[Finding] = []

    async def story() -> None:
        stage = Stage(past.repo, past.home)
        stage.processes = past.processes
        stage.store = SqliteStore(str(database), stage.clock)
        audit = Audit(stage.build().ports, pause=waits or Waits())
        found.extend([finding async for finding in audit.findings(lambda: rivals)])
        await stage.store.close()

    play(story)
    return {each.name.split()[0]: each for each in found}


def broken(found: dict[str, Finding]) -> set[str]:
    return {key for key, each in found.items() if not each.ok}


@contextmanager
def moved(path: Path) -> Iterator[None]:
    """A folder that is not where it was, for a while."""
    elsewhere = path.with_name(f"{path.name}.moved")
    path.rename(elsewhere)
    try:
        yield
    finally:
        elsewhere.rename(path)


@contextmanager
def without_refs(past: Past, prefix: str) -> Iterator[None]:
    """A hub that has lost its refs below a name, for a while."""
    kept = past.git("for-each-ref", "--format=%(objectname) %(refname)", prefix, at=past.hub).splitlines()
    assert kept
    try:
        for each in kept:
            past.git("update-ref", "-d", each.split()[1], at=past.hub)
        yield
    finally:
        for each in kept:
            past.git("update-ref", each.split()[1], each.split()[0], at=past.hub)
