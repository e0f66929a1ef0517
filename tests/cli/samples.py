"""Sample answers of a daemon about a change."""

from __future__ import annotations

from typing import Any

CHECK: dict[str, Any] = {
    "command": "pytest -q",
    "tree": "c" * 40,
    "passed": True,
    "exit_code": 0,
    "seconds": 1.25,
    "reason": "",
    "sandbox": "bubblewrap",
}
CHANGE: dict[str, Any] = {
    "id": "c3",
    "branch": "work/swift-otter",
    "task": "t3",
    "agent": "swift-otter",
    "state": "testing",
    "reason": "",
    "candidate": "a" * 40,
    "checks": [CHECK],
    "title": "Fix the login race",
    "returns": 0,
    "age_seconds": 3.0,
}
EVIL = "\x1b]52;c;aGk=\x07\x1b[2J\u202egnp.exe"
"""A text that would steer a terminal: the clipboard, the screen, the direction."""
