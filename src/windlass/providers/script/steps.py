"""Every step that a script can have, and the settings of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from windlass.core.errors import BadInput
from windlass.core.files import values
from windlass.core.files.section import Section
from windlass.core.files.tree import Items, Keys, Leaf, Node

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_JSON_WORDS = {"true": True, "false": False, "null": None, "": None}


class StepSection(Section):
    """The settings of a step. A text is what is written, so `null` and `~` are words."""

    nothing = ("",)


Take = Callable[[Section, str], Any]
"""Takes the value of a key out of a section, and notes what does not fit."""


class StepForm(NamedTuple):
    """The settings of a step, of which one may stand for all."""

    keys: dict[str, Take]
    needs: tuple[str, ...] = ()
    short: str = ""
    """The setting that a bare text stands for."""
    listed: str = ""
    """The setting that a bare list stands for."""
    one_of: tuple[str, ...] = ()
    """Exactly one of these must be there."""
    whole: Callable[[Section, str], dict[str, Any]] | None = None
    """Takes the step's value itself, where it has no fixed settings."""

    @property
    def usage(self) -> str:
        if not self.keys:
            return "takes no value."
        return f"takes {'a text, or ' if self.short else ''}a mapping with {', '.join(self.keys)}."


def text(section: Section, key: str) -> str:
    return section.text(key, required="Write a text.", blank=True)


def text_or_nothing(section: Section, key: str) -> str:
    return section.text(key, blank=True)


def texts(section: Section, key: str) -> list[str]:
    """One text, or a list of them."""
    value = section.node(key)
    leaves = value.items if isinstance(value, Items) else (value or Leaf(""),)
    found = [leaf.text for leaf in leaves if isinstance(leaf, Leaf) and (leaf.text or not leaf.plain)]
    if not found or len(found) < len(leaves):
        section.refuse(key, "must be a text, or a list of texts.")
    return found


def checked(check: Callable[[str], Any]) -> Take:
    """A text that a function turns into a value. The function may raise BadInput."""
    return lambda section, key: section.checked(key, check, None, required="Write a value.")


def path(name: str) -> str:
    """A file of the worktree."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or not parts[-1] or "\0" in name:
        raise BadInput(f"must be the path of a file inside the worktree, not {name!r}.")
    return name


def ref(name: str) -> str:
    if name.startswith("-"):
        raise BadInput(f"must be a branch or commit, not {name!r}.")
    return name


def number(written: str) -> float:
    if (found := values.number(written)) < 0:
        raise BadInput(f"must be at least 0, not {written}.")
    return found


def whole(most: int) -> Take:
    """A whole number up to a limit."""

    def check(written: str) -> int:
        if not 0 <= (found := values.whole_number(written)) <= most:
            raise BadInput(f"must be a whole number from 0 to {most}, not {written}.")
        return found

    return checked(check)


def one(*words: str) -> Take:
    return checked(lambda word: values.one_of(word, words))


flag = checked(values.truth)


def contents(step: Section, verb: str) -> dict[str, Any]:
    """Files and their texts: `{path: P, text: T}` or `{P: T, …}`."""
    value = step.node(verb)
    if not isinstance(value, Keys) or not value.entries:
        step.refuse(verb, "must be files with their text, as in {hello.txt: Hello}.")
        return {}
    files = step.section(verb)
    if set(files) == {"path", "text"}:
        return {"files": {checked(path)(files, "path"): text_or_nothing(files, "text")}}
    for name in files:
        try:
            path(name)
        except BadInput as error:
            files.refuse(name, str(error), at=files.key_place(name))
    return {"files": {name: text_or_nothing(files, name) for name in files}}


def signal(step: Section, verb: str) -> dict[str, Any]:
    """The signal to write: a value, or settings that say how to write it."""
    value = step.node(verb)
    settings = step.section(verb) if isinstance(value, Keys) else StepSection(step.notes, verb, None)
    if not set(settings) & {"value", "text", "kind"}:
        return {"value": plain(value)}
    settings.only(_SIGNAL)
    return {key: _SIGNAL[key](settings, key) for key in settings if key in _SIGNAL}


def plain(node: Node | None) -> Any:
    """Any value, with the types of JSON."""
    match node:
        case None:
            return None
        case Items():
            return [plain(item) for item in node.items]
        case Keys():
            return {key.text: plain(value) for key, value in node.entries}
    if not node.plain or (node.text not in _JSON_WORDS and not _JSON_NUMBER.fullmatch(node.text)):
        return node.text
    if node.text in _JSON_WORDS:
        return _JSON_WORDS[node.text]
    return float(node.text) if set(node.text) & set(".eE") else int(node.text)


_SIGNAL: dict[str, Take] = {
    "value": lambda section, key: plain(section.node(key)),
    "text": text_or_nothing,
    "encoding": one("utf-8", "utf-8-sig", "utf-16"),
    "kind": one("link", "pipe", "folder", "huge"),
}

STEPS: dict[str, StepForm] = {
    "say": StepForm({"text": text}, ("text",), "text"),
    "write": StepForm({}, whole=contents),
    "append": StepForm({}, whole=contents),
    "replace": StepForm({"path": checked(path), "old": text, "new": text_or_nothing}, ("path", "old", "new")),
    "delete": StepForm({"path": checked(path)}, ("path",), "path"),
    "run": StepForm({"command": text, "may_fail": flag}, ("command",), "command"),
    "commit": StepForm({"message": text}, ("message",), "message"),
    "merge": StepForm({"ref": checked(ref), "take": one("ours", "theirs")}, ("ref",), "ref"),
    "sleep": StepForm({"seconds": checked(number)}, ("seconds",), "seconds"),
    "expect": StepForm({"text": text}, ("text",), "text"),
    "done": StepForm({"text": text}, (), "text"),
    "ask": StepForm({"questions": texts}, ("questions",), "questions", "questions"),
    "error": StepForm({"text": text}, ("text",), "text"),
    "exit": StepForm({"code": whole(255)}, ("code",), "code"),
    "crash": StepForm({}),
    "hang": StepForm({}),
    "signal": StepForm({}, whole=signal),
    "ignore-term": StepForm({}),
    "children": StepForm({"count": whole(1000), "seconds": checked(number), "session": flag}, ("count",), "count"),
    "emit": StepForm({"file": text, "lines": texts, "delay": checked(number)}, (), "file", "lines", ("file", "lines")),
    "print": StepForm({"bytes": whole(10**9), "line": whole(10**9)}, ("bytes",), "bytes"),
}
