"""`windlass rescue` and `receipt`: what they say of main without a difference, and of lists that go on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_daemon import FakeDaemon
from test_cli_output import RECEIPT
from typing_room import Keyboard

SIDE = "refs/windlass/rescue/kind-yak/1/0-refs-heads-side"
ITEM: dict[str, Any] = {
    "number": 1,
    "id": "kind-yak/1",
    "agent": "kind-yak",
    "saved_at": 0.0,
    "why": "its worktree was removed",
    "commits": 1,
    "file_count": 0,
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


class TestPages:
    def test_a_list_names_the_command_for_the_older_ones(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """And how many files each has; programs are told beside their list."""
        item = ITEM | {"file_count": 100_000, "files": ["a", "b"]}
        daemon.teach("GET /rescue", {"as_of": 1.0, "items": [item], "left_out": 7, "since": 88})
        shown = keyboard.type("rescue", "list", "--all", "--limit", "1", "--since", "99")
        assert "100000: a, b and 99998 more" in shown.stdout
        assert "7 older ones not looked at yet: windlass rescue list --all --since 88" in shown.stdout
        assert set(daemon.asked[-1][2].split("&")) == {"all=1", "since=99", "limit=1"}
        listed = keyboard.type("rescue", "list", "--json")
        assert json.loads(listed.stdout) == [item]
        assert "windlass rescue list --since 88" in listed.stderr

    @pytest.mark.parametrize(
        ("words", "request_"),
        [
            (("receipt", "c3"), "GET /changes/c3/receipt"),
            (("rescue", "show", "kind-yak/1"), "GET /rescue/show"),
        ],
    )
    def test_a_page_names_the_command_for_the_next(
        self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...], request_: str
    ) -> None:
        """From the first file that is not shown; the last page names none."""
        daemon.teach(request_, ITEM | RECEIPT | {"file_count": 7, "files": ["c", "d"], "diff": "+x"})
        shown = keyboard.type(*words, "--since", "2", "--limit", "2").stdout
        assert "7, from 3 on: c, d and 3 more" in shown
        assert f"windlass {' '.join(words)} --since 4" in shown
        assert daemon.asked[-1][2].endswith("since=2&limit=2")
        assert "--since" not in keyboard.type(*words, "--since", "5", "--limit", "2").stdout
