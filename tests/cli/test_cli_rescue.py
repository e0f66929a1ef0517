"""`windlass rescue show` without a difference: what it says of main, and when."""

from __future__ import annotations

from typing import Any

import pytest
from fake_daemon import FakeDaemon
from typing_room import Keyboard

SIDE = "refs/windlass/rescue/kind-yak/1/0-refs-heads-side"
ITEM: dict[str, Any] = {
    "number": 1,
    "id": "kind-yak/1",
    "agent": "kind-yak",
    "saved_at": 0.0,
    "why": "its worktree was removed",
    "commits": 1,
    "files": [],
    "landed": False,
    "ref": "refs/windlass/rescue/kind-yak/1/tree",
    "commit": "a" * 40,
    "base": "b" * 40,
    "also": [],
    "project": "repo",
    "diff": "",
    "raw": "",
}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"landed": True}, "Main has all of it."),
        ({"also": [SIDE]}, f"what is named above does: windlass rescue show {SIDE}"),
        ({"ref": SIDE}, "main does not have its commits"),
    ],
)
def test_main_has_all_of_it_only_where_it_has_the_commits(
    keyboard: Keyboard, daemon: FakeDaemon, facts: dict[str, Any], said: str
) -> None:
    """A side branch or a stash whose files are as main's is not in main, and neither is what was saved beside."""
    daemon.teach("GET /rescue/show", ITEM | facts)
    shown = keyboard.on_terminal("rescue", "show", "kind-yak/1", columns=200, NO_COLOR="1")[1]
    assert said in shown
    assert ("Main has all of it" in shown) == bool(facts.get("landed"))
