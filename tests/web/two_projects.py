"""Two projects in one home: one is full of words that are its own, in the other an agent looks for them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from stage import SetSettings, Stage, commit
from starlette.requests import Request

from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.message import Kind
from windlass.core.ports.store import Reading
from windlass.core.workflows.instance import Instance
from windlass.daemon.doctor import Doctor
from windlass.daemon.settings import SettingsFileEditor, SettingsFiles
from windlass.engine import Engine
from windlass.engine.projects.tasks import Order
from windlass.web.authentication import Caller
from windlass.web.request import AppContext

MARK = "zq7"
"""The beginning of every word that is planted, and of nothing else."""
AGENT = "---\nname: {name}\nrole: {role}\nprovider: command\n---\nDo it.\n"
CONFIG = '[project]\nname = "{name}"\n[work]\ncommand = "claude-like"\n[checks]\ncommand = "echo {word}check"\n'
RUN_HEADER = "x-run"


class NamedCallers:
    """Knows a caller by the run in a header, for stories in which the connection is not in question."""

    def caller(self, request: Request, /) -> Caller:
        return Caller(request.headers.get(RUN_HEADER, ""))


class TwoProjects(Stage):
    """A home with the project of the victim, and the one of whoever looks."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.other, victim = folder / "shed", folder / f"{MARK}vault"
        home.mkdir(parents=True, exist_ok=True)
        _make(self.other, name="shed", word="passed")
        _make(victim, name=f"{MARK}project", word=MARK)
        super().__init__(victim, home)

    def build(self) -> Engine:
        """The engine, with settings from files: each project has its own."""
        files = SettingsFiles(self.home, environment={})
        self.settings = cast(SetSettings, files)
        self.editor = SettingsFileEditor(files, lambda _path: {})
        return super().build()

    @property
    def context(self) -> AppContext:
        async def nowhere() -> list[Any]:
            return []

        doctor = Doctor(self.engine, self.home)
        return AppContext(
            version="1",
            pid=1,
            started=0.0,
            home=str(self.home),
            editor=self.editor,
            presences=nowhere,
            examine=doctor.examine,
            check=doctor.check,
            leave=lambda: None,
        )

    async def work(self, repo: Path, title: str, **more: Any) -> str:
        order = Order(path=str(repo), title=title, provider="command", options={"command": "x"}, **more)
        return (await self.engine.tasks.add(order))[1].id

    async def plant(self) -> None:
        """Let the victim's agents land, print, ask, talk, write and leave work behind."""
        landed = await self.work(self.repo, f"{MARK}landed", brief=f"{MARK}brief", paths=(f"{MARK}paths/",))
        busy = await self.work(self.repo, f"{MARK}busy")
        asking = await self.work(self.repo, f"{MARK}asking")
        spy = await self.work(self.other, "Look around")
        near = await self.work(self.repo, "Live beside them")
        await self.move()
        self.spy, self.neighbour = [(await self.run_of(name)).id for name in (spy, near)]
        await self.commit(busy, "busy.txt", f"{MARK}line\n")
        self.processes.say((await self.run_of(busy)).id, f"{MARK}printed\n".encode())
        await self.finish(landed, f"{MARK}file.txt", "landed\n")
        await self._ask(asking)
        await self.move()
        await self._talk(busy)
        await self._queue_own_branch()
        await self.engine.queue.pause(str(self.repo), f"{MARK}pause")
        self.engine.troubles.report("land", RuntimeError(f"{MARK}trouble"))
        await self.engine.troubles.tell(self.store)
        await self.engine.radar.picture(look=True)

    async def _ask(self, name: str) -> None:
        asked = {"status": "questions", "questions": [{"id": "q1", "question": f"{MARK}question?"}]}
        await self.signal(name, json.dumps(asked))
        await self.exit(name)

    async def _talk(self, busy: str) -> None:
        project = await self.engine.projects.at(str(self.repo))
        person, agent = Speaker("human"), await self.engine.talk.speaker((await self.run_of(busy)).id)
        for speaker, new in (
            (person, NewMessage(body=f"{MARK}said", channel="main")),
            (person, NewMessage(body=f"{MARK}secret", to=(busy,))),
            (agent, NewMessage(body=f"{MARK}private", to=("human",))),
            (agent, NewMessage(body=f"{MARK}asked?", to=("human",), kind=Kind.ASK)),
        ):
            await self.engine.talk.say(speaker, new, project)
        await self.engine.documents.write(person, project.id, f"{MARK}document")
        jam = Instance(name="jam", project=project.id, workflow=f"{MARK}flow", source="flow.yaml", agents=(busy,))
        await self.store.write(lambda store: store.record("instance.started", "@jam", jam))

    async def _queue_own_branch(self) -> None:
        """A change of the person's own, which waits."""
        _git(self.repo, "checkout", "-q", "-b", "own")
        commit(self.repo, f"{MARK}own.txt", "own\n", {**os.environ})
        _git(self.repo, "checkout", "-q", "main")
        await self.engine.queue.add(str(self.repo), "own", f"{MARK}queued")

    async def ids(self) -> dict[str, list[str]]:
        """The ids of all that belongs to the victim, by noun."""
        project = (await self.engine.projects.at(str(self.repo))).id
        return await self.store.read(lambda store: _ids(store, project))


def _ids(store: Reading, project: str) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for event in store.events(after=0, limit=10_000):
        for row in event.became:
            if row.get("project") == project:
                found.setdefault(str(row["noun"]), {})[_id(row)] = None
    return {noun: [*ids] for noun, ids in found.items()}


def _id(row: Mapping[str, Any]) -> str:
    if row["noun"] == "agent":
        return f"{row['name']}@{row['instance']}" if row.get("instance") else str(row["name"])
    return str(row["id"] if "id" in row else row["name"])


def _make(repo: Path, *, name: str, word: str) -> None:
    (repo / ".windlass/agents").mkdir(parents=True)
    (repo / ".windlass/config.toml").write_text(CONFIG.format(name=name, word=word))
    (repo / ".windlass/agents/helper.md").write_text(AGENT.format(name="helper", role=f"{word}role"))
    _git(repo, "init", "-q", "-b", "main")
    _git(repo, "add", "-A")
    _git(repo, "commit", "-q", "-m", "Begin")


def _git(repo: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=repo, check=True)
