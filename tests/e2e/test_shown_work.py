"""What is shown of a piece of work: what it took, and the phase that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_stage import WITHIN, Stage, stage

TELLER = """
[providers.teller]
command = ["sh", "-c"]
prompt = "flag"
prompt_flag = '''
for each in read edit; do echo "{\\"tool\\": \\"$each\\"}"; done
echo '{"tokens": 7}'
windlass agent complete Told.
'''
output = "json"
input_tokens = "tokens"
tool_uses = "tool"
"""


@pytest.fixture
def house() -> Iterator[Stage]:
    """A person with a coding CLI of their own that tells what it uses."""
    with stage(WINDLASS_SANDBOX="off") as made:
        with (made.state / "config.toml").open("a") as config:
            config.write(TELLER)
        yield made


def test_how_often_tools_were_used_is_shown(house: Stage) -> None:
    """To programs in both forms, and beside the tokens."""
    begun = house.wl("work", "Tell it", "--provider", "teller", "--wait", "--json", code=1).value
    name = begun["agent"]["name"]
    page = house.wl("show", name, "--json").value
    assert (page["usage"]["tool_uses"], page["usage"]["input_tokens"]) == (2, 7)
    assert [each["usage"]["tool_uses"] for each in page["runs"]] == [2]
    assert "<tool-uses>2</tool-uses>" in house.wl("show", name, "--xml").out


def test_work_is_put_into_a_phase_and_whoever_is_at_it_is_asked(house: Stage) -> None:
    """It shows which; one who is running answers; what is no phase here is refused."""
    waits = "windlass listen --agent-id {name} --json > q; windlass answer --conversation-id {asked} 'Half way.'"
    asked = '$(sed -n \'s/.*"conversationId": *"\\([^"]*\\)".*/\\1/p\' q)'
    command = f"{waits.format(name='$WINDLASS_AGENT', asked=asked)}; sleep 60"
    phase = house.wl("work", "Split the parser", "--command", "sleep 60", "--json").value["task"]
    begun = house.wl("work", "Write the lexer", "--command", command, "--phase", phase["id"], "--json").value
    name, task = begun["agent"], begun["task"]
    assert (task["parent"], phase["parent"]) == (phase["id"], "")
    assert house.wl("ask", "--phase-id", phase["id"], "How far?", "--timeout", f"{WITHIN}s").out == "Half way.\n"
    assert house.wl("show", name, "--json").value["parent"] == phase["id"]
    assert f"Phase     {phase['id']}" in house.wl("show", name).out
    assert "Phase" not in house.wl("show", house.wl("list", "--json").value[-1]["name"]).out
    house.wl("stop", "--all")
    house.event("task.cancelled", task["id"])
    for wrong, words, code in (("t99", "no task t99 in this project", 3), (task["id"], "is cancelled", 2)):
        refused = house.wl("work", "More", "--command", "true", "--phase", wrong, code=code)
        assert words in refused.err and "windlass list" in refused.err
