"""Agents that talk on and on, with a real daemon: the person is told once, and lets them go on as they are told."""

from __future__ import annotations

import re
import shlex

from e2e_stage import Stage, stage

from patience import until

AGENT = "---\nname: {name}\nrole: Plays {name}\nprovider: command\n---\nYou are {name}.\n"
SETTINGS = """
[limits]
hops = 3
[work]
command = '''
case $WINDLASS_AGENT in ping) other=pong;; *) other=ping;; esac
windlass send "Your turn." --to $other
windlass agent complete
'''
"""


def test_the_command_that_the_person_is_told_lets_them_go_on() -> None:
    """It stands in the inbox, in list and in show; after it they are held up again, and the person is told again."""
    with stage(WINDLASS_SANDBOX="off") as house:
        with (house.state / "config.toml").open("a") as config:
            config.write(SETTINGS)
        house.commit({f".windlass/agents/{name}.md": AGENT.format(name=name) for name in ("ping", "pong")})
        house.wl("send", "Begin.", "--to", "ping")
        told = until(lambda: reports(house), "the person is told")
        assert "4 messages went from agent to agent without a person" in told[0]
        (command,) = re.findall(r"`(windlass .*)`", told[0])
        for words in (("list",), ("show", "ping"), ("inbox", "ping")):
            assert command in house.wl(*words).out
        house.wl("daemon", "stop")
        house.wl(*shlex.split(command)[1:])
        until(lambda: len(reports(house)) == 2, "they went on, and are held up again")


def reports(house: Stage) -> list[str]:
    """What the system has told the person."""
    letters = house.wl("inbox", "--json").value
    return [letter["message"] for letter in letters if letter["from"] == "system" and letter["kind"] == "report"]
