"""The errors of the YAML parser as sentences, each with its place and a remedy."""

from __future__ import annotations

import re

import yaml

from windlass.core.files.tree import TOP, Place

_COLON = "A colon with a space after it begins a new key: put the text in quotes."
_FOLLOWS = "something follows a text that ended with its quote or bracket."
_WHOLE = "Put the whole text in quotes, or below `|` in lines of its own."
_REMEDIES = (
    ("mapping values are not allowed", "a colon stands where no key can be.", _COLON),
    ("found undefined alias", "no anchor has that name.", "Write &name where the text stands first, before *name."),
    ("found unexpected end of stream", "a quote is opened and never closed.", "Close it."),
    ("found unknown escape character", "a backslash in double quotes begins an escape.", "Use single quotes."),
    ("could not find expected ':'", "a line without a colon.",
     "Write `key: value`, or indent it below the text it belongs to."),
    ("did not find expected ',' or", "a bracket is opened and not closed.", "Close it, or put a comma between."),
    ("did not find expected node content", "a bracket is opened, and nothing follows.", "Close it."),
    ("did not find expected '-' indicator", "this line belongs to no part of the list above it.",
     "Begin it with a dash, or indent it like the key of the list."),
    ("did not find expected <document start>", "something stands here after the end of all keys.",
     "Indent the keys of one part alike."),
    ("block sequence entries are not allowed", "a list can't begin here.", "Begin it in a line of its own."),
    ("expected alphabetic or numeric character", _FOLLOWS, _WHOLE),
)  # fmt: skip
_FROM_THE_BEGINNING = ("end of stream", "',' or", "node content", "expected ':'")
"""Errors that the parser notices too late: the place is where the quote, bracket or key begins."""
_STARTS = {
    "@": "A text that begins with @ needs quotes.",
    "`": "A text that begins with a backtick needs quotes.",
    "%": "A text that begins with % needs quotes.",
}


def explain(error: yaml.YAMLError, text: str) -> tuple[Place, str, str]:
    """Place, words and remedy."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return TOP, f"this is not YAML: {' '.join(str(error).split())}.", ""
    problem = (error.problem or "this is not YAML").strip()
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines()
    line = min(mark.line, max(len(lines) - 1, 0)) if mark else 0
    column = mark.column if mark and mark.line == line else 0
    here = lines[line] if lines else ""
    if "cannot start any token" in problem:
        return (line + 1, column + 1), *_token(here, column)
    if re.match(r" *\t", here):
        return (line + 1, here.index("\t") + 1), "a tab indents this line.", "Indent with spaces."
    if "did not find expected key" in problem:
        return (line + 1, column + 1), *_out_of_place(here, column)
    for known, words, remedy in _REMEDIES:
        if known in problem:
            begin = error.context_mark if any(part in known for part in _FROM_THE_BEGINNING) else None
            at = (begin.line + 1, begin.column + 1) if begin else (line + 1, column + 1)
            unquoted = "',' or" in known and "${{" in lines[at[0] - 1]
            return at, words, "Within brackets, a text with `${{` needs quotes." if unquoted else remedy
    return (line + 1, column + 1), f"this is not YAML: {problem}.", ""


def _out_of_place(here: str, column: int) -> tuple[str, str]:
    if here[:column].strip():
        return _FOLLOWS, _WHOLE
    return "this line is indented differently from the keys that it belongs to.", "Indent the keys of one part alike."


def _token(here: str, column: int) -> tuple[str, str]:
    letter = here[column : column + 1]
    if letter == "\t" or re.match(r" *\t", here):
        return "a tab stands where the line is indented.", "Indent with spaces."
    return f"a text can't begin with {letter} here.", _STARTS.get(letter, "Put the text in quotes.")
