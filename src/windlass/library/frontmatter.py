"""The head of a Markdown file: YAML between two lines of dashes."""

from __future__ import annotations

import re

from windlass.core.files.problems import Notes
from windlass.core.files.section import kind_of
from windlass.core.files.tree import TOP, Keys
from windlass.system.strict_yaml import read_yaml

LARGEST = 32_000
"""Characters of a head."""

_END = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)


def split(text: str, notes: Notes) -> tuple[Keys, str]:
    """The keys of the head, and the body. Every problem is noted."""
    first, _, _ = text.partition("\n")
    if first.rstrip() != "---":
        words = "it must begin with a line of three dashes, the agent's settings, and three dashes again."
        notes.refuse(TOP, "", words)
        return Keys(), text
    end = _END.search(text, len(first) + 1)
    if end is None:
        notes.refuse(TOP, "", "the settings that begin here never end: a line of three dashes is missing.")
        return Keys(), ""
    head = read_yaml(text[: end.start()], notes, largest=LARGEST)  # with its dashes, so that its lines are the file's
    if head is not None and not isinstance(head, Keys) and kind_of(head) != "nothing":
        notes.refuse(head.at, "", "the settings must be keys with values, such as `name: coder`.")
    return head if isinstance(head, Keys) else Keys(), text[end.end() :].removeprefix("\n")
