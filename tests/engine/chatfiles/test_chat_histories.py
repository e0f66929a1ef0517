"""Random histories of chat files: whoever writes, and wherever the daemon dies, each word is said and shown once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from chat_stage import HUMAN, ChatStage, Halt, add, text
from stage import play

from windlass.core.messages.chat_line import ChatEntry, Names, parse
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.message import Message

STEPS = 60


class Crowd:
    """Writers of files, who write in pieces; and a daemon that dies at times."""

    def __init__(self, stage: ChatStage, chance: random.Random) -> None:
        self.stage = stage
        self.chance = chance
        self.files: dict[str, Path] = {}
        self.halves: dict[str, str] = {}
        """The rest of what someone is writing."""
        self.wrote: dict[str, list[str]] = {}
        self.sent: list[str] = []
        self.deaths = 0

    async def begin(self) -> None:
        await self.stage.begin()
        names = (self.stage.one, self.stage.two, self.stage.three)
        self.files = {name: await self.stage.file(name) for name in names} | {"human": self.stage.own}
        self.wrote = {file: [] for file in self.files}

    async def step(self, number: int) -> None:
        """Something happens."""
        writer = self.chance.choice([*self.files])
        match self.chance.randrange(6):
            case 0 | 1:
                self.write(writer, number)
            case 2 if rest := self.halves.pop(writer, ""):
                add(self.files[writer], rest)
            case 3:
                project = await self.stage.project()
                await self.stage.engine.talk.send(
                    HUMAN, NewMessage(body=f"sent {number}", project=project.id, everyone=True)
                )
                self.sent.append(f"sent {number}")
            case 4:
                await self.die()
            case _:
                await self.stage.move()
                self.stage.clock.time += self.chance.choice([0.0, 0.1, 1.0])

    def write(self, writer: str, number: int) -> None:
        """One line, or several; whole, or the first half of it."""
        if writer in self.halves:
            return
        body = self.chance.choice(
            [f"word {number}", "the same", f"word {number}\n\n  [a-to-b]: more", f"x{number}" * 900]
        )
        to = self.chance.choice([file for file in self.files if file != writer])
        line = f"[{writer}-to-{to}]: " + body.replace("\n", "\n    ") + "\n"
        cut = self.chance.choice([len(line), self.chance.randrange(len(line))])
        if cut < len(line) and line[:cut].endswith("\n"):  # who pauses between two lines for long has ended it
            cut -= 1
        add(self.files[writer], line[:cut])
        if cut < len(line):
            self.halves[writer] = line[cut:]
        self.wrote[writer].append(body)

    async def die(self) -> None:
        """The daemon is killed, sometimes in the middle of something."""
        reader: Any = self.stage.engine._chat.reader
        port: Any = self.stage.engine.ports.chats
        place, method = self.chance.choice([(reader, "save"), (port, "append")])
        done, before, turns = getattr(place, method), self.chance.random() < 0.5, self.chance.randrange(3)

        async def halt(*given: object, **how: object) -> object:
            nonlocal turns
            turns -= 1
            if turns < 0 and before:
                raise Halt
            result = await done(*given, **how)
            if turns < 0:
                raise Halt
            return result

        setattr(place, method, halt)
        try:
            await self.stage.move()
        except Halt:
            self.deaths += 1
        await self.stage.restart()

    async def end(self) -> None:
        """Everyone comes to an end of what they write."""
        for writer, rest in self.halves.items():
            add(self.files[writer], rest)
        await self.stage.pass_time()
        await self.stage.restart_and_pass()


def read(file: Path, names: Names) -> list[tuple[str, tuple[str, ...], str]]:
    items, _ = parse(text(file).encode(), names)
    assert all(isinstance(item, ChatEntry) for item in items), items
    return sorted((item.sender, item.to, item.body) for item in items if isinstance(item, ChatEntry))


def as_shown(message: Message) -> tuple[str, tuple[str, ...], str]:
    return message.sender, ("all",) if message.broadcast else message.to, message.body


@pytest.mark.parametrize("seed", range(8))
def test_each_word_is_said_once_and_shown_once(repo: Path, tmp_path: Path, seed: int) -> None:
    """In each writer's order; and every file has all that its writer may see, and nothing else."""
    (repo / ".git/info/exclude").write_text("/.windlass/\n")
    stage = ChatStage(repo, tmp_path / "home")

    async def story() -> None:
        crowd = Crowd(stage, random.Random(seed))
        await crowd.begin()
        for number in range(STEPS):
            await crowd.step(number)
        await crowd.end()

        said = await stage.said()
        for writer, bodies in crowd.wrote.items():
            own = [each.body for each in said if each.sender == writer and each.body not in crowd.sent]
            assert own == bodies, writer
        names = Names(tuple(crowd.files))
        for writer, file in crowd.files.items():
            seen = [each for each in said if writer == "human" or not each.direct or writer in (each.sender, *each.to)]
            assert read(file, names) == sorted(map(as_shown, seen)), writer
        assert await stage.said(system=True) == []
        assert crowd.deaths

    play(story)
