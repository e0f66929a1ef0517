"""A project with a workflow's file, for stories of what its agents do."""

from __future__ import annotations

from typing import Any

from stage import Stage

from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.workflows.instance import Instance, Motion
from windlass.engine.workflows.start import WorkflowStart

PAIR = """
name: pair
context:
agents:
  coder: {command: code, system_prompt: You code.}
  reviewer: {command: review, system_prompt: You review.}
setup:
  - {shell: echo it, as: what}
kickoff: |
  Fix ${{ what }}.

  @coder please begin.
"""


class WorkflowStage(Stage):
    """A project with a workflow's file, and hands to start it."""

    async def begin(self, text: str = PAIR, *, instance: str = "", stays: bool = False, **values: str) -> Instance:
        file = self.repo / "flow.yaml"
        file.write_text(text)
        values.setdefault("what", "it")
        start = WorkflowStart(path=str(self.repo), file=str(file), instance=instance, values=values, stays=stays)
        begun = await self.engine.workflows.begin(start)
        await self.move()
        return begun

    async def say(self, name: str, body: str, **more: Any) -> None:
        speaker = await self.speaker(name)
        await self.engine.talk.send(speaker, NewMessage(body=body, project=speaker.project, **more))

    async def speaker(self, name: str) -> Speaker:
        agent, run = await self.agent(name), await self.run_of(name)
        return Speaker(agent.id, agent.project, run.id)

    async def pass_time(self) -> None:
        for _ in range(4):
            await self.move()
            self.clock.time += 1

    async def leave(self, name: str, code: int = 0) -> None:
        """It ends, without a word: in a workflow nobody has to say that it is done."""
        await self.exit(name, code)
        await self.move()

    async def instance(self, name: str = "default") -> Instance:
        project = await self.store.read(lambda store: store.projects()[0])
        found = await self.store.read(lambda store: store.find(Instance, f"{project.id}/{name}"))
        assert found is not None
        return found

    async def motion(self, name: str = "default") -> Motion:
        return (await self.engine.workflows.look(str(self.repo), name)).motion

    def on_main(self, path: str) -> str:
        return (self.repo / path).read_text() if (self.repo / path).exists() else ""

    async def runs(self, name: str) -> int:
        return len(await self.store.read(lambda store: store.runs_of(name)))
