"""What is shown of a piece of work: what it took, and the phase that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_stage import Stage, stage

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
