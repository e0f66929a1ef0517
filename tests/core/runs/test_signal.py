"""What an agent says at the end, understood or refused with the reason it is told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core import codec
from windlass.core.runs.signal import (
    LARGEST,
    MOST_QUESTIONS,
    BadSignal,
    Question,
    SaidDone,
    SaidError,
    SaidQuestions,
    Signal,
    read_signal,
    read_status,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def said(value: object) -> Signal:
    return read_signal(json.dumps(value).encode())


class TestUnderstood:
    @pytest.mark.parametrize(
        ("value", "signal"),
        [
            ({"status": "done", "result": "Fixed."}, SaidDone("Fixed.")),
            ({"status": "done"}, SaidDone("")),
            ({"status": "done", "result": None}, SaidDone("")),
            ({"status": "done", "result": {"files": 2}}, SaidDone('{"files": 2}')),
            ({"status": "done", "more": [1]}, SaidDone("")),
            ({"status": "error", "error": "No way."}, SaidError("No way.")),
            ({"status": "error"}, SaidError("no reason given")),
            ({"status": "questions", "questions": ["Why?"]}, SaidQuestions((Question("q1", "Why?"),))),
            (
                {"status": "questions", "questions": [{"id": "a", "question": "Why?"}, {"question": "How?"}]},
                SaidQuestions((Question("a", "Why?"), Question("q2", "How?"))),
            ),
        ],
    )
    def test_a_signal_is_understood(self, value: object, signal: Signal) -> None:
        """The three claims, also as loosely as agents write them."""
        assert said(value) == signal

    def test_a_byte_order_mark_is_no_obstacle(self) -> None:
        """Some editors write one."""
        assert read_signal(b'\xef\xbb\xbf{"status": "done"}') == SaidDone()


class TestRefused:
    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "it is empty"),
            (b" \n\t", "it is empty"),
            (b'{"status": "do', "it is not JSON: Unterminated string"),
            (b"done", "it is not JSON: Expecting value"),
            (b'["done"]', "it is not a JSON object"),
            (b'"done"', "it is not a JSON object"),
            (b"{}", 'it has no "status"'),
            (b'{"status": null}', 'it has no "status"'),
            (b'{"status": "finished"}', "\"status\" is 'finished', which is none of done, questions, error"),
            (b'{"status": ["done"]}', '"status" is \'["done"]\', which is none of'),
            (b'{"status": "done", "status": "error"}', "it is not JSON: a key stands twice"),
            (b'{"status": "done", "result": {"a": 1, "a": 2}}', "it is not JSON: a key stands twice"),
            (b'{"status": "done", "result": NaN}', "it is not JSON: NaN"),
            (b'{"status": "done", "result": "\\ud800"}', "it has half a character"),
            (b'{"status": "questions"}', '"questions" must be a list'),
            (b'{"status": "questions", "questions": []}', '"questions" must be a list'),
            (b'{"status": "questions", "questions": {"q": "?"}}', '"questions" must be a list'),
            (b'{"status": "questions", "questions": [{"id": "q1"}]}', "each question must have"),
            (b'{"status": "questions", "questions": [" "]}', "each question must have"),
            ('{"status": "done"}'.encode("utf-16"), "it is not UTF-8"),
            (b'{"status": "done", "result": "\xff"}', "it is not UTF-8"),
            (b'{"status": "done", "result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "it is nested too deeply"),
            (b'{"status": "done", "result": ' + b"9" * 5000 + b"}", "it is not JSON"),
            (b" " * (LARGEST + 1), "it has more than 1000000 bytes"),
        ],
        ids=lambda given: repr(given)[:40],
    )
    def test_what_is_no_signal_is_refused_in_words(self, content: bytes, problem: str) -> None:
        """The problem is a phrase that the agent is told."""
        found = read_signal(content)

        assert isinstance(found, BadSignal)
        assert found.problem.startswith(problem)
        assert len(found.excerpt) <= 200

    def test_the_largest_signal_is_read(self) -> None:
        """One byte less than too much is fine."""
        content = b'{"status": "done", "result": "' + b"x" * (LARGEST - 32) + b'"}'

        assert len(content) == LARGEST
        assert isinstance(read_signal(content), SaidDone)

    def test_a_flood_of_questions_is_refused(self) -> None:
        """Each question becomes a message to a person; nobody can answer a thousand."""
        questions = ["Why?"] * (MOST_QUESTIONS + 1)

        assert isinstance(said({"status": "questions", "questions": questions}), BadSignal)
        assert isinstance(said({"status": "questions", "questions": questions[1:]}), SaidQuestions)

    def test_any_depth_is_understood_or_refused(self) -> None:
        """Also the depths at which reading still works but writing again does not."""
        for depth in (*range(100, 1100, 25), 5000):
            found = read_signal(b'{"status": "done", "result": ' + b"[" * depth + b"]" * depth + b"}")
            assert isinstance(found, SaidDone | BadSignal)


class TestAnything:
    @given(st.binary(max_size=300))
    def test_any_bytes_are_a_signal_or_a_bad_one(self, content: bytes) -> None:
        """Nothing that an agent writes makes the reader fail."""
        assert isinstance(read_signal(content), Signal)

    @given(JSON)
    def test_any_json_is_a_signal_or_a_bad_one(self, value: object) -> None:
        """The same for well-formed values."""
        assert isinstance(said(value), Signal)

    @given(st.sampled_from(["done", "error", "questions"]), JSON)
    def test_what_is_understood_can_be_stored(self, status: str, value: object) -> None:
        """A signal's texts can be written as UTF-8 and as JSON."""
        found = said({"status": status, "result": value, "error": value, "questions": value})

        assert codec.encode(found)


class TestStatusEntries:
    @pytest.mark.parametrize(
        ("text", "signal"),
        [
            ('{"coder": {"status": "completed", "result": "Built."}}', SaidDone("Built.")),
            ('{"server": {"status": "running"}, "coder": {"status": "completed"}}', SaidDone("")),
            ('{"coder": {"status": "error", "error": "no network"}}', SaidError("no network")),
            ('{"coder": {"status": "error"}}', SaidError("no reason given")),
            ('{"coder": {"status": "running"}}', None),
            ('{"reviewer": {"status": "completed"}}', None),
            ('{"coder": "completed"}', None),
            ('["completed"]', None),
            ('{"coder": {"status": ["completed"]}}', None),
            ('{"coder": {"status": "completed"}', None),
            ("\ud800", None),
            ("[" * 100_000, None),
        ],
    )
    def test_only_its_own_completed_or_error_entry_counts(self, text: str, signal: Signal | None) -> None:
        """Everything else in a status file says nothing, and breaks nothing."""
        assert read_status(text.encode("utf-8", "surrogatepass"), "coder@pr-7", "coder") == signal
