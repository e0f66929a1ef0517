"""Questions with ids, and answers that name them: `q1="yes"`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput

_ASKED = re.compile(r"^([^\s:=]{1,40}): (.*)$", re.MULTILINE)
_ANSWER = re.compile(r"([^\s:=]{1,40})=(.*)", re.DOTALL)
_OURS = re.compile(r"q\d+")
"""What ids look like that nobody chose; in a text of its own, such a word would mean nothing else."""


def asked_ids(body: str) -> list[str]:
    """The ids in a message of questions, one at the beginning of each."""
    return [found[1] for found in _ASKED.finditer(body)]


def compose_answer(words: Sequence[str], body: str) -> str:
    """The answer that these words of a command line mean: one text, or texts by the ids that were asked."""
    asked = asked_ids(body)
    named = [_ANSWER.fullmatch(word) for word in words]
    if len(words) == 1 and (named[0] is None or not _means_an_id(named[0][1], asked)):
        return words[0]  # a text may have an equals sign in it
    answers: dict[str, str] = {}
    for word, found in zip(words, named, strict=True):
        if found is None:
            raise BadInput(f"{word!r} names no question.", hint='Quote one text for all, or write q1="…" q2="…".')
        if found[1] not in asked:
            hint = near_miss(found[1], asked) or f"Asked were: {', '.join(asked) or 'none by name'}."
            raise BadInput(f"No question is called {found[1]}.", hint=hint)
        if not found[2].strip():
            raise BadInput(f"The answer to {found[1]} is empty.", hint=f'Write {found[1]}="…", or leave it out.')
        if found[1] in answers:
            raise BadInput(f"{found[1]} is answered twice.", hint="Give each question one answer.")
        answers[found[1]] = found[2]
    return "\n".join(f"{name}: {answer}" for name, answer in answers.items())


def _means_an_id(word: str, asked: Sequence[str]) -> bool:
    return word in asked or bool(asked and _OURS.fullmatch(word))
