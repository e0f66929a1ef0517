"""The processes that the contract of the `Processes` port moves: real ones by shell programs, and the fake's."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from fakes import FakeProcesses
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch, Processes
from windlass.process.detached import DetachedProcesses
from windlass.process.proc import living
from windlass.process.stamp import is_of
from windlass.process.starting.spawner import Spawner

NO_PROGRAM = "windlass-no-such-program"

PUPPET = 'while read -r verb what; do case $verb in say) cat "$what" ;; exit) exit "$what" ;; esac; done <"$STRINGS"'


class Stage(Protocol):
    """A port under test, and the strings by which its processes are moved."""

    port: Processes

    def launch(self, run: str) -> Launch: ...
    def say(self, run: str, words: bytes) -> None: ...
    def exit(self, run: str, code: int) -> None: ...
    def vanish(self, run: str, identity: Identity) -> None: ...
    def share(self, run: str) -> None:
        """Give the file of a run's output a second name."""
        ...

    def touch(self, folder: Path) -> None: ...
    def close(self) -> None: ...


class RealStage:
    """Each run is a shell that obeys what is written into its pipe."""

    def __init__(self, path: Path) -> None:
        self.home = f"test-{uuid.uuid4().hex}"
        self.path = path
        self.spawner = Spawner()
        self.real = DetachedProcesses(path / "runs", self.home, self.spawner)
        self.port: Processes = self.real
        self.strings: dict[str, int] = {}
        self.words = 0

    def launch(self, run: str) -> Launch:
        pipe = self.path / f"{run}.strings"
        if run not in self.strings:
            os.mkfifo(pipe)
            self.strings[run] = os.open(pipe, os.O_RDWR)
        return Launch(run=run, argv=("sh", "-c", PUPPET), cwd=str(self.path), environment={"STRINGS": str(pipe)})

    def say(self, run: str, words: bytes) -> None:
        self.words += 1
        said = self.path / f"words-{self.words}"
        said.write_bytes(words)
        os.write(self.strings[run], b"say %s\n" % os.fsencode(said))

    def exit(self, run: str, code: int) -> None:
        os.write(self.strings[run], b"exit %d\n" % code)

    def vanish(self, run: str, identity: Identity) -> None:
        os.killpg(identity.pid, signal.SIGKILL)

    def share(self, run: str) -> None:
        (self.path / "second").hardlink_to(self.path / "runs" / run / "output")

    def touch(self, folder: Path) -> None:
        (folder / "something").write_text("new")

    def close(self) -> None:
        self.real.close()
        self.spawner.close()
        for descriptor in self.strings.values():
            os.close(descriptor)
        left = [each for each in living() if is_of(self.home, each.stamp)]
        for each in left:
            os.kill(each.pid, signal.SIGKILL)
        assert left == []


class FakeStage:
    """The fake obeys directly."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fake = FakeProcesses(missing=[NO_PROGRAM])
        self.port: Processes = self.fake

    def launch(self, run: str) -> Launch:
        return Launch(run=run, argv=("puppet",), cwd=str(self.path), environment={})

    def say(self, run: str, words: bytes) -> None:
        self.fake.say(run, words)

    def exit(self, run: str, code: int) -> None:
        self.fake.exit(run, code)

    def vanish(self, run: str, identity: Identity) -> None:
        self.fake.vanish(run)

    def share(self, run: str) -> None:
        self.fake.started[run].shared = True

    def touch(self, folder: Path) -> None:
        self.fake.touch(str(folder))

    def close(self) -> None:
        return None


STAGES: dict[str, Callable[[Path], Stage]] = {"detached": RealStage, "fake": FakeStage}
