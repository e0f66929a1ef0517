"""A person whose repository defines three agents that talk; a test writes what each of them does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from e2e_stage import Stage, stage

PLAYER = """
[providers.player]
summary = "plays what stands in a file of its agent's name"
command = ["sh", "{player}"]
prompt = "stdin"
resume = ["--session", "{{session}}"]
session = "^session: (\\\\S+)"
"""
AGENT = "---\nname: {name}\nrole: Plays {name}\nprovider: player\n---\nYou are {name}.\n"
DONE = "windlass agent complete 'Said what I had to say.'"


@contextmanager
def talking_stage() -> Iterator[Stage]:
    """A person whose repository defines three agents; what each does is in a file that a test writes."""
    with stage(WINDLASS_SANDBOX="off") as made:
        player = made.flag("player.sh")
        player.write_text(
            f'echo "session: $WINDLASS_AGENT"\ncat "$WINDLASS_PROMPT" >> "{made.folder}/$WINDLASS_AGENT.told"\n'
            f'exec sh -e "{made.folder}/$WINDLASS_AGENT.sh"\n'
        )
        with (made.state / "config.toml").open("a") as config:
            config.write(PLAYER.format(player=player))
        made.commit(
            {f".windlass/agents/{name}.md": AGENT.format(name=name) for name in ("coder", "tester", "reviewer")}
        )
        for name in ("coder", "tester", "reviewer"):
            plays(made, name, DONE)
        yield made


def plays(house: Stage, name: str, *commands: str) -> None:
    """What an agent does in each of its runs."""
    house.flag(f"{name}.sh").write_text("\n".join(commands) + "\n")


def told(house: Stage, name: str) -> str:
    """All that an agent's prompts said so far."""
    file = house.flag(f"{name}.told")
    return file.read_text() if file.exists() else ""


def inbox(house: Stage, *words: str) -> list[Any]:
    return list(house.wl("inbox", *words, "--json").value)


def settled(house: Stage, name: str) -> bool:
    """Whether an agent has read all that it was told, in runs that have ended."""
    return all(each["receipt"] in ("read", "acked") for each in inbox(house, name))
