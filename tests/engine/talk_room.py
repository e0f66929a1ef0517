"""A project in which people and agents talk, for stories."""

from __future__ import annotations

from stage import Stage

from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Run
from windlass.engine.messages.callers import CallerInProject

AGENT = """---
name: {name}
role: {name} of this project
provider: command
{more}---
Do what you are told.
"""


class Room(Stage):
    """A project whose repository defines agents, and people and agents who talk in it."""

    async def begin(self, *names: str, more: str = "") -> None:
        folder = self.repo / ".windlass/agents"
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.md").write_text(AGENT.format(name=name, more=more))
        settings = self.settings.settings
        object.__setattr__(settings.work, "command", "claude-like")
        self.project = (await self.engine.projects.at(str(self.repo))).id
        self.person = await self.engine.talk.speaker("")

    async def send(self, speaker: Speaker | None = None, body: str = "Please look.", **more: object) -> Message:
        post = NewMessage(body=body, project=self.project, **more)  # type: ignore[arg-type]  # a test says which
        return await self.engine.talk.send(speaker or self.person, post)

    async def ask(self, speaker: Speaker, body: str, **which: str) -> Message:
        caller = CallerInProject(speaker=speaker, project=await self.engine.projects.get(self.project))
        return (await self.engine.callers.ask(caller, body, **which)).message

    async def speaker(self, name: str) -> Speaker:
        return await self.engine.talk.speaker((await self.run_of(name)).id)

    def system_of(self, run: Run) -> str:
        """What a run was told apart from its prompt."""
        file = self.home / "runs" / run.id / "system.md"
        return file.read_text() if file.exists() else ""

    async def receipts(self, message: Message) -> dict[str, tuple[str, str]]:
        found = await self.store.read(lambda store: store.receipts(message.id))
        return {each.reader: (str(each.receipt), each.reason) for each in found}
