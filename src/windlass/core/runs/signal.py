"""How an agent says that its run is over: `{"status": "done" | "questions" | "error", …}`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

EXCERPT = 200
LARGEST = 1_000_000
"""Bytes. A longer signal is refused unread."""
MOST_QUESTIONS = 50
"""Each becomes a message to a person."""


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    question: str


@dataclass(frozen=True, slots=True)
class SaidDone:
    result: str = ""


@dataclass(frozen=True, slots=True)
class SaidQuestions:
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class SaidError:
    error: str


@dataclass(frozen=True, slots=True)
class BadSignal:
    """Something is there, but it is no signal. `problem` is told to the agent."""

    problem: str
    excerpt: str = ""


Signal = SaidDone | SaidQuestions | SaidError | BadSignal


def read_signal(content: bytes) -> Signal:
    """Understand the bytes of a signal file, or say what is wrong with them."""
    excerpt = content[:EXCERPT].decode("utf-8", "replace")
    if len(content) > LARGEST:
        return BadSignal(f"it has more than {LARGEST} bytes", excerpt)
    if not content.strip():
        return BadSignal("it is empty")
    try:
        signal = _understand(_parsed(content))
    except UnicodeDecodeError:
        return BadSignal("it is not UTF-8", excerpt)
    except UnicodeEncodeError:
        return BadSignal("it has half a character (a lone surrogate) in it", excerpt)
    except RecursionError:
        return BadSignal("it is nested too deeply", excerpt)
    except ValueError as error:
        return BadSignal(f"it is not JSON: {error}", excerpt)
    return BadSignal(signal, excerpt) if isinstance(signal, str) else signal


def read_status(content: bytes, *names: str) -> SaidDone | SaidError | None:
    """The signal that an agent's own entry in `process-status.json` stands for; anything else there says nothing."""
    try:
        value = _parsed(content[: LARGEST + 1])
    except (ValueError, RecursionError):
        return None
    entry = next((value[name] for name in names if name in value), None) if isinstance(value, dict) else None
    match entry:
        case {"status": "completed", **said}:
            return SaidDone(_text(said.get("result")))
        case {"status": "error", **said}:
            return SaidError(_text(said.get("error")) or "no reason given")
    return None


def _parsed(content: bytes) -> Any:
    value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_refuse_constant)
    json.dumps(value, ensure_ascii=False).encode()  # what can't be written again can't be kept either
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands twice")
    return value


def _understand(value: Any) -> SaidDone | SaidQuestions | SaidError | str:
    """A signal, or what is wrong with it."""
    if not isinstance(value, dict):
        return "it is not a JSON object"
    match value.get("status"):
        case "done":
            return SaidDone(_text(value.get("result")))
        case "error":
            return SaidError(_text(value.get("error")) or "no reason given")
        case "questions":
            return _questions(value.get("questions"))
        case None:
            return 'it has no "status"'
        case other:
            return f'"status" is {_text(other)[:40]!r}, which is none of done, questions, error'


def _questions(value: Any) -> SaidQuestions | str:
    if not isinstance(value, list) or not value:
        return '"questions" must be a list with at least one question'
    if len(value) > MOST_QUESTIONS:
        return f'"questions" has more than {MOST_QUESTIONS}; ask what matters most'
    questions = tuple(_question(index, asked) for index, asked in enumerate(value, start=1))
    if not all(question.question.strip() for question in questions):
        return 'each question must have a "question" text'
    return SaidQuestions(questions)


def _question(index: int, value: Any) -> Question:
    if isinstance(value, dict):
        return Question(_text(value.get("id")) or f"q{index}", _text(value.get("question")))
    return Question(f"q{index}", _text(value))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
