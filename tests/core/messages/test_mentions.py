"""Who is mentioned, and who is only spoken of. The cases are those that earlier systems got wrong."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windlass.core.messages.mentions import Mentions, mentions, strangers

KNOWN = ("alice", "bob", "code-reviewer", "test_runner", "alice@pr-7")

MENTIONED = {
    "@alice please check": ["alice"],
    "@alice and @nobody": ["alice"],
    "@bob @alice @bob": ["bob", "alice"],
    "@code-reviewer's note, @test_runner.": ["code-reviewer", "test_runner"],
    "(@alice)": ["alice"],
    "@alice,": ["alice"],
    "@alice.": ["alice"],
    "@alice...": ["alice"],
    "@alice: please fix": ["alice"],
    "@alice!\r\nthanks": ["alice"],
    "**@alice** _@bob_ [@alice]": ["alice", "bob"],
    "cc:@alice": ["alice"],
    "I wonder...@alice?": [],
    "... @alice?": ["alice"],
    "mail bob@alice.com": [],
    "mail first.last+@alice": [],
    "mail j\N{LATIN SMALL LETTER O WITH DIAERESIS}rg@alice": [],
    "npm i @alice/core": [],
    "npm i node_modules/@alice": [],
    "see https://example.com/?by=@alice": [],
    "see https://example.com/@alice, @bob": ["bob"],
    "@alice.com": [],
    "@pytest.fixture @alice.command()": [],
    "@alice-bob": [],
    "@alicex @xalice": [],
    "@Alice": [],
    "@@alice": [],
    "@alice@pr-7 and @bob@pr-7": ["alice@pr-7"],
    "@alice@pr-7@x @alice@": [],
    r"\@alice": [],
    r"\\@alice": ["alice"],
    "say `@alice` or ``x ` @bob``": [],
    "a lone ` then @alice": ["alice"],
    "`a\nb @alice` @bob": ["bob"],
    "`open\n\n@alice` is another paragraph": ["alice"],
    r"\`@alice` is no code": ["alice"],
    r"`\` @alice `x`": ["alice"],
    "```\n@alice\n```\n@bob": ["bob"],
    "```python\n@alice\n``\n@bob": [],
    "~~~\n@alice\n```\n@alice\n~~~~\n@bob": ["bob"],
    "- a list\n    ```\n    @alice\n    ```\n    @bob": ["bob"],
    "- ```\n  @alice\n  ```\n@bob": ["bob"],
    "``` not `a fence @alice": ["alice"],
    "> @alice said\n@bob": ["bob"],
    ">@alice\n  > @alice\n- > @alice": [],
    "> ```\n@bob": ["bob"],
    "```\n> ```\n@bob\n```": [],
    "```\r\n@alice\r\n```\r\n@bob": ["bob"],
    "": [],
    "@": [],
    "alice": [],
}

ADDRESSED = {
    "@alice please orchestrate.\n- Use @bob for the review\n- Use @test_runner for tests": ["alice"],
    "@alice please orchestrate.\n- Use @bob for it\n- @test_runner: run it": ["alice", "test_runner"],
    "@alice please orchestrate.\n\n- Use @bob for it": ["alice", "bob"],
    "The plan:\n- @alice writes for @bob\n- then @bob": ["alice", "bob"],
    "- @alice writes\n- tell @bob": ["alice", "bob"],
    "@alice dispatched to @bob": ["alice"],
    "Hey @alice and @bob": ["alice", "bob"],
    "@alice and @bob, ask @code-reviewer": ["alice", "bob"],
    "@alice, @nobody & @bob: ask @code-reviewer": ["alice", "bob"],
    "@nobody should ask @alice": ["alice"],
    "**@alice** tell @bob": ["alice"],
    "`@alice` @bob, and @code-reviewer": ["bob", "code-reviewer"],
    "@alice orders from @bob": ["alice"],
    "@alice please.\nWhen there are issues, @bob mends them.": ["alice"],
    "@alice look.\n\nThis was by @bob.": ["alice", "bob"],
    "@alice look.\n\n@alice this was by @bob.": ["alice"],
    "- @alice does this with @code-reviewer\n- @bob does that": ["alice", "bob"],
    "1. @alice writes\n2. @bob tests": ["alice", "bob"],
    "# @alice with @code-reviewer\n@bob, too": ["alice", "bob"],
    "> what about @alice?\n@bob knows, @code-reviewer does not": ["bob"],
}


@pytest.mark.parametrize("text", MENTIONED)
def test_who_is_mentioned(text: str) -> None:
    """Known names, each once, in order of appearance; code, quotes and addresses name nobody."""
    assert MENTIONED[text] == [*mentions(text, KNOWN).all]


@pytest.mark.parametrize("text", ADDRESSED)
def test_who_is_addressed(text: str) -> None:
    """A leading run of mentions addresses; in a paragraph without one, all do."""
    assert ADDRESSED[text] == [*mentions(text, KNOWN).addressed]


def test_all_who_are_mentioned_get_it() -> None:
    """Who is only spoken of is mentioned all the same."""
    assert mentions("@alice dispatched to @bob", KNOWN) == Mentions(("alice", "bob"), ("alice",))


PARTS = [*"@`~>\\/.-_ \n\r\t*ab1,(:", "@alice", "@bob", "```", "~~~", "> ", "- "]
NOISE = st.lists(st.sampled_from(PARTS)).map("".join)


@given(NOISE | st.text())
@example("`" * 9 + "\\")
def test_whatever_the_text_only_known_names_come_out(text: str) -> None:
    """It never fails; names are known, stand in the text, come once, in order; the addressed are among them."""
    found = mentions(text, KNOWN)

    assert len(set(found.all)) == len(found.all)
    assert {*found.addressed} <= {*found.all} <= {*KNOWN}
    assert all(f"@{each}" in text for each in found.all)
    assert bool(found.addressed) == bool(found.all)


@given(st.lists(st.sampled_from(KNOWN), unique=True))
def test_names_come_in_the_order_of_the_text(names: list[str]) -> None:
    """Who is named first comes first."""
    assert mentions(" ".join(f"@{name}" for name in names), KNOWN).all == tuple(names)


@given(st.text(alphabet=st.characters(exclude_characters="@")))
def test_a_text_without_the_sign_mentions_nobody(text: str) -> None:
    """Names alone are only words."""
    assert mentions(f"alice {text} bob", KNOWN) == Mentions()


@given(NOISE)
def test_fenced_text_never_mentions(text: str) -> None:
    """Whatever stands in a fence that is longer than any in it."""
    fence = "`" * (len(text) + 3)
    assert mentions(f"{fence}\n{text}\n{fence}", KNOWN) == Mentions()


@given(NOISE)
def test_a_quote_never_mentions(text: str) -> None:
    """Whatever stands in quoted lines."""
    quoted = "\n".join(f"> {part}" for part in text.replace("\r", "\n").split("\n"))
    assert mentions(quoted, KNOWN) == Mentions()


HOSTILE = (
    "`",
    "a",
    "://",
    "@",
    "@a",
    "`@",
    "\\",
    "\\`",
    "\\@",
    "` ``",
    "a.",
    "- ",
    "> ",
    "```\n",
    "@alice ",
    "and ",
    "1. ",
    "a\n",
    "@alice`",
)


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_text_takes_no_longer_than_its_length(part: str) -> None:
    """A megabyte of anything is read in a moment."""
    text = part * (1_000_000 // len(part)) + " @alice"
    began = time.process_time()
    mentions(text, KNOWN)

    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hello @codr", ("codr",)),
        ("@alice and @nobody, @nobody.", ("nobody",)),
        ("@Alice hi", ("Alice",)),
        ("mail x@nobody.com, `@nobody` or \\@nobody", ()),
        ("nobody at all", ()),
    ],
)
def test_names_that_nobody_has_are_found(text: str, found: tuple[str, ...]) -> None:
    """Where they would mention someone, so that a slip is noticed."""
    assert strangers(text, KNOWN) == found
