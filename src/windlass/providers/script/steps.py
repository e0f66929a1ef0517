"""Every step that a script can have, and what it takes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

Pairs = Callable[[Any], dict[str, tuple[Any, Any]]]
Take = Callable[[Any, Pairs], Any]
"""Makes a value of a YAML node, or raises Wrong. Mappings are opened with the function it is given."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None, "": None}


class Wrong(Exception):
    """A node is not what its step takes. The text completes a sentence that begins with the step."""

    def __init__(self, node: Any, words: str) -> None:
        super().__init__(words)
        self.node = node


class StepForm(NamedTuple):
    """What a step takes: settings by name, of which one may stand for all."""

    keys: dict[str, Take]
    needs: tuple[str, ...] = ()
    short: str = ""
    """The setting that a bare text stands for."""
    listed: str = ""
    """The setting that a bare list stands for."""
    one_of: tuple[str, ...] = ()
    """Exactly one of these must be there."""
    whole: Take | None = None
    """Takes the value itself, where it has no fixed settings."""

    @property
    def usage(self) -> str:
        if not self.keys:
            return "takes no value"
        return f"takes {'a text, or ' if self.short else ''}a mapping with {', '.join(self.keys)}"


def text(node: Any, pairs: Pairs) -> str:
    del pairs
    if not isinstance(node, yaml.ScalarNode) or (not node.value and not node.style):
        raise Wrong(node, "needs a text")
    return str(node.value)


def path(node: Any, pairs: Pairs) -> str:
    """A file of the worktree."""
    value = text(node, pairs)
    parts = value.split("/")
    if not value or value.startswith("/") or ".." in parts or not parts[-1] or "\0" in value:
        raise Wrong(node, f"needs the path of a file inside the worktree, not {value!r}")
    return value


def ref(node: Any, pairs: Pairs) -> str:
    value = text(node, pairs)
    if value.startswith("-") or not value.strip():
        raise Wrong(node, f"needs a branch or commit, not {value!r}")
    return value


def number(node: Any, pairs: Pairs) -> float:
    value = text(node, pairs)
    if not _NUMBER.fullmatch(value) or not math.isfinite(float(value)) or float(value) < 0:
        raise Wrong(node, f"needs a number that is not negative, not {value!r}")
    return float(value)


def whole(most: int) -> Take:
    """A whole number up to a limit."""

    def take(node: Any, pairs: Pairs) -> int:
        value = text(node, pairs)
        if not value.isascii() or not value.isdigit() or len(value) > 12 or int(value) > most:
            raise Wrong(node, f"needs a whole number from 0 to {most}, not {value[:20]!r}")
        return int(value)

    return take


def flag(node: Any, pairs: Pairs) -> bool:
    value = text(node, pairs)
    if value not in ("true", "false"):
        raise Wrong(node, f"must be true or false, not {value!r}")
    return value == "true"


def one(*words: str) -> Take:
    """One of some words."""

    def take(node: Any, pairs: Pairs) -> str:
        value = text(node, pairs)
        if value not in words:
            raise Wrong(node, f"must be one of {', '.join(words)}, not {value!r}")
        return value

    return take


def texts(node: Any, pairs: Pairs) -> list[str]:
    """One text, or a list of them."""
    if isinstance(node, yaml.SequenceNode) and node.value:
        return [text(each, pairs) for each in node.value]
    return [text(node, pairs)]


def contents(node: Any, pairs: Pairs) -> dict[str, Any]:
    """Files and what is in them: `{path: P, text: T}` or `{P: T, …}`."""
    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise Wrong(node, "needs files with their text, as in {hello.txt: Hello}")
    found = pairs(node)
    if found.keys() == {"path", "text"}:
        return {"files": {path(found["path"][1], pairs): _written(found["text"][1], pairs)}}
    return {"files": {path(key, pairs): _written(value, pairs) for key, value in found.values()}}


def _written(node: Any, pairs: Pairs) -> str:
    """The text of a file, which may be empty."""
    return "" if isinstance(node, yaml.ScalarNode) and not node.value else text(node, pairs)


def signal(node: Any, pairs: Pairs) -> dict[str, Any]:
    """What to write as the signal: a value, or how to write what."""
    found = pairs(node) if isinstance(node, yaml.MappingNode) else {}
    if not found.keys() & {"value", "text", "kind"}:
        return {"value": plain(node, pairs)}
    for key, (name, _) in found.items():
        if key not in _SIGNAL:
            raise Wrong(name, f"has no setting {key}")
    return {key: _SIGNAL[key](value, pairs) for key, (_, value) in found.items()}


def plain(node: Any, pairs: Pairs) -> Any:
    """Any value, with the types of JSON."""
    if isinstance(node, yaml.SequenceNode):
        return [plain(each, pairs) for each in node.value]
    if isinstance(node, yaml.MappingNode):
        return {key: plain(value, pairs) for key, (_, value) in pairs(node).items()}
    if node.style or (node.value not in _WORDS and not _NUMBER.fullmatch(node.value)):
        return node.value
    if node.value in _WORDS:
        return _WORDS[node.value]
    return float(node.value) if set(node.value) & set(".eE") else int(node.value)


_SIGNAL: dict[str, Take] = {
    "value": plain,
    "text": _written,
    "encoding": one("utf-8", "utf-8-sig", "utf-16"),
    "kind": one("link", "pipe", "folder", "huge"),
}

STEPS: dict[str, StepForm] = {
    "say": StepForm({"text": text}, ("text",), "text"),
    "write": StepForm({}, whole=contents),
    "append": StepForm({}, whole=contents),
    "replace": StepForm({"path": path, "old": text, "new": _written}, ("path", "old", "new")),
    "delete": StepForm({"path": path}, ("path",), "path"),
    "run": StepForm({"command": text, "may_fail": flag}, ("command",), "command"),
    "commit": StepForm({"message": text}, ("message",), "message"),
    "merge": StepForm({"ref": ref, "take": one("ours", "theirs")}, ("ref",), "ref"),
    "sleep": StepForm({"seconds": number}, ("seconds",), "seconds"),
    "expect": StepForm({"text": text}, ("text",), "text"),
    "done": StepForm({"text": text}, (), "text"),
    "ask": StepForm({"questions": texts}, ("questions",), "questions", "questions"),
    "error": StepForm({"text": text}, ("text",), "text"),
    "exit": StepForm({"code": whole(255)}, ("code",), "code"),
    "crash": StepForm({}),
    "hang": StepForm({}),
    "signal": StepForm({}, whole=signal),
    "ignore-term": StepForm({}),
    "children": StepForm({"count": whole(1000), "seconds": number, "session": flag}, ("count",), "count"),
    "emit": StepForm({"file": text, "lines": texts, "delay": number}, (), "file", "lines", ("file", "lines")),
    "print": StepForm({"bytes": whole(10**9), "line": whole(10**9)}, ("bytes",), "bytes"),
}
