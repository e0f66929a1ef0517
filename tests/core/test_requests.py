"""Requests: what a caller gave becomes a typed value, or a sentence."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import pytest
from msgspec import Meta, field

from windlass.core.errors import BadInput
from windlass.core.requests import Request, describe, read


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(Request):
    done: str = ""
    why: str = ""


class Wanted(Request):
    body: Annotated[str, Meta(description="What is said.")]
    sender: str = field(default="", name="from")
    colour: Colour | None = None
    limit: Annotated[int, Meta(ge=1)] = 20
    timeout: Annotated[float, Meta(ge=0)] = 0.0
    to: tuple[str, ...] = ()
    ids: Annotated[tuple[str, ...], Meta(min_length=1)] = ()
    options: dict[str, str] = field(default_factory=dict)
    inner: Inner | None = None
    all: bool = False


def given(values: dict[str, Any], *, texts: bool = False) -> Wanted:
    return read(Wanted, {"body": "Hi.", **values}, noun="a key", texts=texts)


class TestRead:
    def test_takes_what_fits(self) -> None:
        """By the names that callers use; the rest is as declared."""
        found = given({"from": "me", "colour": "red", "to": ["a"], "inner": {"done": "x"}})
        assert found == Wanted("Hi.", "me", Colour.RED, to=("a",), inner=Inner("x"))

    def test_takes_numbers_and_truths_from_texts(self) -> None:
        """As they come in a query."""
        assert given({"limit": "3", "timeout": "1.5", "all": "1"}, texts=True) == Wanted(
            "Hi.", limit=3, timeout=1.5, all=True
        )

    def test_counts_null_and_an_empty_text_as_left_out(self) -> None:
        """An empty text only where no text is expected."""
        assert given({"limit": None, "colour": "", "from": ""}) == Wanted("Hi.")

    @pytest.mark.parametrize(
        ("values", "says"),
        [
            ({"body": 1}, "body must be a text."),
            ({"body": None}, "body is missing: What is said."),
            ({"from": ["a"]}, "from must be a text."),
            ({"colour": "green"}, "colour must be one of blue, red, not 'green'."),
            ({"limit": 0}, "limit must be a whole number of at least 1."),
            ({"limit": "3"}, "limit must be a whole number of at least 1, not '3'."),
            ({"limit": True}, "limit must be a whole number of at least 1."),
            ({"timeout": float("nan")}, "timeout must be a number of seconds of at least 0."),
            ({"to": "a"}, "to must be a list of texts, not 'a'."),
            ({"ids": []}, "ids must be a list of texts, at least one."),
            ({"options": {"a": 1}}, "options must be an object of texts."),
            ({"inner": {"don": "x"}}, "inner must be an object with done, why."),
            ({"all": 1}, "all must be true or false."),
            ({"form": "x"}, "'form' is not a key."),
        ],
        ids=str,
    )
    def test_refuses_the_rest_by_name(self, values: dict[str, Any], says: str) -> None:
        """It says what the field must be."""
        with pytest.raises(BadInput) as refused:
            given(values)
        assert str(refused.value) == says

    def test_says_which_field_was_probably_meant(self) -> None:
        """And what its surface says besides."""
        with pytest.raises(BadInput) as refused:
            read(Wanted, {"form": "x"}, noun="a key", hint="See there.")
        assert refused.value.hint == "Did you mean from? See there."

    def test_lists_the_fields_where_none_is_near(self) -> None:
        """Also that there are none."""
        for kind, says in ((Inner, "There are: done, why."), (Request, "There are: none.")):
            with pytest.raises(BadInput) as refused:
                read(kind, {"zzzz": "x"}, noun="a key")
            assert refused.value.hint == says


def test_a_request_is_described_by_what_checks_it() -> None:
    """Nothing else is accepted, and what must be there is said."""
    schema = describe(Inner)
    assert (list(schema["properties"]), schema["required"], schema["additionalProperties"]) == (
        ["done", "why"],
        [],
        False,
    )
