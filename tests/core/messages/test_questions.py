"""Answers by the ids of their questions."""

from __future__ import annotations

import pytest

from windlass.core.errors import BadInput
from windlass.core.messages.questions import asked_ids, compose_answer

ASKED = "q1: Which port?\nq2: Drop the table? It has rows: many."


def test_the_ids_stand_at_the_beginning_of_each_question() -> None:
    """Colons inside a question are no ids."""
    assert asked_ids(ASKED) == ["q1", "q2"]


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (["Use 8080, and keep it."], "Use 8080, and keep it."),
        (["port=8080"], "port=8080"),
        (["q1=8080"], "q1: 8080"),
        (["q2=no=never", "q1=80\n81"], "q2: no=never\nq1: 80\n81"),
    ],
)
def test_words_are_one_text_or_answers_by_id(words: list[str], body: str) -> None:
    """A single text may have an equals sign; only an id that was asked makes it an answer by id."""
    assert compose_answer(words, ASKED) == body


def test_an_id_that_was_not_asked_is_refused_with_the_near_miss() -> None:
    """Nothing is sent to an agent that it could not understand."""
    with pytest.raises(BadInput, match="No question is called p1") as refused:
        compose_answer(["p1=80", "q2=no"], ASKED)
    assert "q1" in refused.value.hint


def test_several_words_that_name_no_question_are_refused() -> None:
    """An answer that someone forgot to quote is not guessed together."""
    with pytest.raises(BadInput, match="names no question"):
        compose_answer(["use", "8080"], ASKED)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["q9=blue"], "No question is called q9"),
        (["q1="], "The answer to q1 is empty"),
        (["q2=no", "q1= "], "The answer to q1 is empty"),
        (["q1=80", "q1=81"], "q1 is answered twice"),
    ],
)
def test_a_slip_in_an_id_or_its_answer_is_refused(words: list[str], why: str) -> None:
    """An agent would go on with nothing, or with one of two; where nothing was asked by id, any text is one."""
    with pytest.raises(BadInput, match=why):
        compose_answer(words, ASKED)
    assert compose_answer(["q9=blue"], "Which colour?") == "q9=blue"
