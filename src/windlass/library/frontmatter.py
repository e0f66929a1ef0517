"""The head of a Markdown file: YAML between two lines of dashes, read strictly and with its lines.

Scalars are taken as they are written, not as YAML guesses: `name: no` is called "no". What refers to itself, carries a
tag or is nested deeply is refused before any tree is built.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from windlass.core.agents.definition import HeadValue
from windlass.library.safe_files import Unreadable

LARGEST = 32_000
DEEPEST = 6

_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FIRST = 2
"""The line on which the YAML begins: the one after the dashes."""


def split(text: str) -> tuple[dict[str, HeadValue], str]:
    """The head's keys, each with its line, and the body. Raises Unreadable with the line."""
    head, body = _parts(text)
    try:
        return _entries(head), body
    except yaml.MarkedYAMLError as error:
        last = head.count("\n") + 1  # what never ends is missed only after that
        raise Unreadable(_words(error, head), min(last, _line(error.problem_mark or error.context_mark))) from error
    except yaml.YAMLError as error:
        raise Unreadable(f"this is not YAML: {error}.") from error


def _parts(text: str) -> tuple[str, str]:
    first, _, rest = text.partition("\n")
    if first.rstrip() != "---":
        raise Unreadable("it must begin with a line of three dashes, the agent's settings, and three dashes again.")
    end = _END.search(rest)
    if end is None:
        raise Unreadable("the settings that begin here never end: a line of three dashes is missing.")
    head = rest[: end.start()]
    if len(head) > LARGEST:
        raise Unreadable(f"its settings have {len(head):,} characters; at most {LARGEST:,} are read.")
    if found := _UNPRINTABLE.search(head):
        raise Unreadable(
            f"the character {found[0]!a} can't stand in YAML.", head.count("\n", 0, found.start()) + _FIRST
        )
    return head, rest[end.end() :].removeprefix("\n")


def _entries(head: str) -> dict[str, HeadValue]:
    _check_shape(head)
    top = yaml.compose(head, Loader=_LOADER)
    if top is None:
        return {}
    if not isinstance(top, yaml.MappingNode):
        raise Unreadable("the settings must be keys with values, such as `name: coder`.", _line(top.start_mark))
    entries: dict[str, HeadValue] = {}
    for key, value in top.value:
        if not isinstance(key, yaml.ScalarNode):
            raise Unreadable("a key must be a word.", _line(key.start_mark))
        if key.value in entries:
            raise Unreadable(f"{key.value} stands here twice.", _line(key.start_mark))
        entries[key.value] = HeadValue(_value(value), _line(key.start_mark))
    return entries


def _check_shape(head: str) -> None:
    """Before any tree is built: what is nested too deeply or refers to itself is never read."""
    depth = 0
    for event in yaml.parse(head, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise Unreadable(f"it is nested more than {DEEPEST} deep.", _line(event.start_mark))
        if isinstance(event, yaml.AliasEvent):
            raise Unreadable("aliases (*name) are not read; write the text again.", _line(event.start_mark))
        if getattr(event, "tag", None) not in (None, "!"):
            raise Unreadable(f"tags such as {event.tag} are not read.", _line(event.start_mark))


def _value(node: Any) -> str | tuple[str, ...] | None:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.SequenceNode) and all(isinstance(each, yaml.ScalarNode) for each in node.value):
        return tuple(str(each.value) for each in node.value)
    return None


def _line(mark: Any) -> int:
    return mark.line + _FIRST if mark else 1


def _words(error: yaml.MarkedYAMLError, head: str) -> str:
    """A YAML error as a sentence."""
    problem = (error.problem or "this is not YAML").strip()
    lines = head.splitlines()
    mark = error.problem_mark
    here = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\t" in here:
        return f"{problem}; a tab stands in this line: indent with spaces."
    if "mapping values are not allowed" in problem:
        return f"{problem}; put the text in quotes: a colon with a space after it begins a new key."
    return f"{problem}{f' ({error.context})' if error.context else ''}."
