"""`${{ name }}`: what is filled in, what is not, and whom a text mentions then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.files.template import Template, parse
from windlass.core.messages.mentions import mentions

ODD = st.text(alphabet="@alicebob${} \n`'\"\\>-#~.xX", max_size=30)


def template(text: str) -> Template:
    made, slips = parse(text)
    assert slips == []
    return made


def rendered(text: str, **values: str) -> str:
    return template(text).render(values)


class TestRender:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("${{name}}", "value"),
            ("${{  name  }}", "value"),
            ("${{\n name\n}}", "value"),
            ("a ${{ name }} b ${{ name }}", "a value b value"),
            ("[${{ empty }}]", "[]"),
            ("$${{ name }}", "${{ name }}"),
            ("$$${{ name }}", "$${{ name }}"),
            ("${ name } {{ name }} $name $", "${ name } {{ name }} $name $"),
            ("${{ nasty }}", "${{ name }} $(id) `id` $${{ x }}"),
            ("${{ name }}}", "value}"),
            ("", ""),
        ],
    )
    def test_values_are_data(self, text: str, shown: str) -> None:
        """A value stands there as it is, whatever it contains; two dollars are the signs themselves."""
        values = {"name": "value", "empty": "", "nasty": "${{ name }} $(id) `id` $${{ x }}"}
        assert template(text).render(values) == shown

    def test_names_have_groups(self) -> None:
        """A dot leads into a group."""
        assert template("${{ env.HOME }}/${{ params.the-base_2 }}").render(
            {"env.HOME": "/h", "params.the-base_2": "b"}
        ) == ("/h/b")

    @pytest.mark.parametrize(
        ("text", "number", "words"),
        [
            ("a ${{ b", 0, "is never closed"),
            ("${{ a } }", 0, "is never closed"),
            ("${{ a ${{ b }}", 0, "is never closed"),
            ("$${{ x }} ${{ a b }}", 1, "'a b' is no name"),
            ("${{ a || b }}", 0, "nothing is computed"),
            ("${{}}", 0, "there is no name"),
            ("${{ .a }}", 0, "is no name"),
            ("${{ a. }}", 0, "is no name"),
            ("${{ 1a }}", 0, "is no name"),
            ("${{ é }}", 0, "is no name"),
        ],
    )
    def test_what_names_nothing_is_a_slip(self, text: str, number: int, words: str) -> None:
        """It is told which of the signs is meant, and what is wrong."""
        slip = parse(text)[1][0]
        assert slip.number == number
        assert words in slip.words

    @given(ODD, ODD, ODD)
    def test_a_value_is_never_looked_into(self, before: str, value: str, after: str) -> None:
        """Whatever stands around it, and in it."""
        text = f"{before.replace('$', 's')}${{{{ x }}}}{after.replace('$', 's')}"
        assert rendered(text, x=value) == text.replace("${{ x }}", value)


class TestSpoken:
    @pytest.mark.parametrize(
        ("text", "addressed"),
        [
            ("@alice look at ${{ diff }}", ("alice",)),
            ("${{ diff }}\n@alice please", ("alice",)),
            ("@alice\n\n${{ diff }}\n\n@bob", ("alice", "bob")),
            ("@alice hand over to @bob: ${{ diff }}", ("alice",)),
            ("${{ diff }}", ()),
            ("@${{ who }}", ()),
            ("@alice${{ who }}", ()),
            ("${{ who }}@alice", ()),
            ("`${{ diff }}` @alice", ("alice",)),
            ("```\n${{ diff }}\n```\n@alice", ("alice",)),
        ],
    )
    def test_only_the_author_mentions(self, text: str, addressed: tuple[str, ...]) -> None:
        """A value mentions nobody, and hides nobody whom the author mentions."""
        assert mentions(template(text).spoken, ["alice", "bob"]).addressed == addressed

    def test_a_diff_with_a_name_in_it_wakes_nobody(self) -> None:
        """The rendered text would mention bob; what its author said does not."""
        made = template("@alice please review:\n\n${{ diff }}\n\nThank you.")
        text = made.render({"diff": "@bob does this\n```\n"})

        assert mentions(text, ["alice", "bob"]).all == ("alice", "bob")
        assert mentions(made.spoken, ["alice", "bob"]).all == ("alice",)
