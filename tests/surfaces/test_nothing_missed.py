"""What is said reaches who reads or waits for it, also where a reader or the daemon goes away in between."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from e2e_stage import WITHIN, until
from mcp_stage import Place, place

pytestmark = pytest.mark.xdist_group("mcp")


@pytest.fixture(scope="module")
def here() -> Iterator[Place]:
    with place() as made:
        yield made


class Speaker:
    """An agent that says something to the person when it is told to."""

    def __init__(self, here: Place, name: str) -> None:
        self.house, self.words = here.house, f"{name} is done."
        self.go, self.done = here.house.flag(f"{name}.go"), here.house.flag(f"{name}.done")
        script = here.house.flag(f"{name}.sh")
        script.write_text(
            f"until [ -e {self.go} ]; do sleep 0.05; done\n"
            f'windlass context send "{self.words}" --to human\ntouch {self.done}\nsleep 100\n'
        )
        here.house.pid(here.house.work(f"Speak {name}", f"exec sh {script}"))

    def speak(self) -> None:
        """It has been said when this returns."""
        self.house.wl("list")
        self.go.touch()
        until(self.done.exists, "its words")


def test_what_was_never_shown_is_read_again(here: Place) -> None:
    """A reader that left before it saw anything finds all of it the next time, and only then."""
    speaker, house = Speaker(here, "one"), here.house
    speaker.speak()
    theirs, ours = os.pipe()
    os.close(theirs)
    subprocess.run(
        (*house.program, "read"), cwd=house.repo, env=house.environment, stdout=ours, timeout=WITHIN, check=False
    )
    os.close(ours)
    [shown] = house.wl("read", "--json").value
    assert (shown["message"], shown["receipt"], shown["status"]) == (speaker.words, "acked", {"human": "acked"})
    assert house.wl("read", "--json").value == []
    [kept] = [each for each in house.wl("inbox", "--all", "--json").value if each["id"] == shown["id"]]
    assert kept == shown, "it looks as it will be, and then it is so"
