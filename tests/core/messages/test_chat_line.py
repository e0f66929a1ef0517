"""What lines of chat.md say, and that whatever is written there is read back as it was."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.messages.chat_line import ChatEntry, ChatProblem, Item, Names, Own, digest_of, parse, write_line

NAMES = Names(("coder", "reviewer", "tester", "path-to-prod", "coder@pr-7", "@pr-7"))


def read(text: str | bytes, names: Names = NAMES) -> list[Item]:
    return parse(text if isinstance(text, bytes) else text.encode(), names)[0]


def said(text: str | bytes, names: Names = NAMES) -> list[tuple[str, tuple[str, ...], str]]:
    return [(each.sender, each.to, each.body) for each in read(text, names) if isinstance(each, ChatEntry)]


def problems(text: str | bytes, names: Names = NAMES) -> list[tuple[int, str]]:
    return [(each.line, each.reason) for each in read(text, names) if isinstance(each, ChatProblem)]


SAID = {
    "[coder-to-reviewer]: please review\n": ("coder", ("reviewer",), "please review"),
    "[coder-to-reviewer] @ [tester, human]: x\n": ("coder", ("reviewer", "tester", "human"), "x"),
    "[coder-to-reviewer]@[@tester , tester,reviewer]: x\n": ("coder", ("reviewer", "tester"), "x"),
    "[coder-to-reviewer]:x\n": ("coder", ("reviewer",), "x"),
    "[coder-to-reviewer] @ []: x\n": ("coder", ("reviewer",), "x"),
    "[reviewer-to-coder] @ [developer]: Approved\n": ("reviewer", ("coder", "human"), "Approved"),
    "[user-to-coder]: x\n": ("human", ("coder",), "x"),
    "[coder-to-all]: x\n": ("coder", ("all",), "x"),
    "[coder@pr-7-to-@pr-7]: x\n": ("coder@pr-7", ("@pr-7",), "x"),
    "[path-to-prod-to-coder]: x\n": ("path-to-prod", ("coder",), "x"),
    "[coder-to-path-to-prod]: x\n": ("coder", ("path-to-prod",), "x"),
    "\N{BYTE ORDER MARK}[coder-to-reviewer]: x\n": ("coder", ("reviewer",), "x"),
    "[coder-to-reviewer]: [coder-to-tester]: x\n": ("coder", ("reviewer",), "[coder-to-tester]: x"),
    "[coder-to-reviewer]: one\r\n  two\r\n": ("coder", ("reviewer",), "one\ntwo"),
    "[coder-to-reviewer]: one\n  two\n    three\n": ("coder", ("reviewer",), "one\ntwo\n  three"),
    "[coder-to-reviewer]: one\n\ttwo\n\t\tthree\n": ("coder", ("reviewer",), "one\ntwo\n\tthree"),
    "[coder-to-reviewer]:\n    one\n\n    two\n\n\n": ("coder", ("reviewer",), "one\n\ntwo"),
    "[coder-to-reviewer]: one\n    two\n  three\n": ("coder", ("reviewer",), "one\ntwo\nthree"),
}


@pytest.mark.parametrize("text", SAID)
def test_what_a_line_says(text: str) -> None:
    """Sender, recipients and text, with the indented lines below."""
    assert said(text) == [SAID[text]]
    assert not problems(text)


REFUSED = {
    "hello\n": "is no message: 'hello'",
    "[coder]: x\n": "does not say who speaks to whom: '[coder]'",
    "[coder-to-reviewer] x\n": "is no message: '[coder-to-reviewer] x'",
    "[coder-to-reviwer]: x\n": "names 'reviwer', and nobody is called so",
    "[codr-to-reviewer]: x\n": "names 'codr', and nobody is called so",
    "[coder-to-reviewer] @ [tester, zzz]: x\n": "names 'zzz', and nobody is called so",
    "[coder-to-system]: x\n": "names 'system', and nobody is called so",
    "[coder-to-reviewer]:  \n": "says nothing",
    "[coder-to-reviewer]:\n": "says nothing",
    "    indented\n": "is indented, and no message is above it",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_message_has_a_reason(text: str) -> None:
    """A malformed line is a named problem, and what follows it is intact."""
    following = "[tester-to-coder]: still here\n"
    assert problems(text + following) == [(1, REFUSED[text])]
    assert said(text + following) == [("tester", ("coder",), "still here")]


def test_a_name_that_nobody_has_is_named() -> None:
    """So that whoever is told can be asked whom they meant."""
    (problem,) = read("[coder-to-reviwer]: x\n")
    assert isinstance(problem, ChatProblem)
    assert problem.stranger == "reviwer"


def test_a_name_that_can_be_read_in_two_ways_is_not_guessed() -> None:
    """Both ways are named; who writes the file decides where that is known."""
    names = ("a", "a-to-b", "b-to-c", "c")
    line = "[a-to-b-to-c]: x\n"

    assert problems(line, Names(names)) == [(1, "can be read in several ways: from a to b-to-c, or from a-to-b to c")]
    assert said(line, Names(names, writers=("a-to-b",))) == [("a-to-b", ("c",), "x")]


def test_blank_lines_do_not_shift_line_numbers() -> None:
    """Lines are counted as an editor does."""
    text = "\n\n[coder-to-reviewer]: one\n\n  more\n \nnonsense\n\n[coder-to-tester]: two\n"
    assert [each.line for each in read(text)] == [3, 7, 9]
    assert [each.line for each in parse(text.encode(), NAMES, line=11)[0]] == [13, 17, 19]


def test_an_unfinished_line_waits() -> None:
    """So does the message that it goes on with; what ends before it does not."""
    one = "[coder-to-reviewer]: one\n"
    assert said(f"{one}[coder-to-tes") == [("coder", ("reviewer",), "one")]
    assert said(f"{one}   mo") == []
    assert said("[coder-to-reviewer]: on") == []
    assert said("") == []


def test_the_last_message_may_go_on() -> None:
    """Until something else stands below it."""
    line = b"[coder-to-reviewer]: one\n"
    assert parse(line, NAMES)[1]
    assert parse(line + b"\r", NAMES)[1]
    assert not parse(line + b"[", NAMES)[1]
    assert not parse(b"[code", NAMES)[1]


def test_ends_are_told_in_bytes() -> None:
    """Where one can read on: right behind each, before any empty lines."""
    first, second = "[coder-to-tester]: \N{SNOWMAN}\n".encode(), b"[coder-to-reviewer]: x\n  y\n"
    assert [each.end for each in read(first + b"\n" + second + b"\n")] == [len(first), len(first) + 1 + len(second)]


def test_only_so_many_are_read_of_what_others_wrote() -> None:
    """None of them may go on, where another follows; ours do not count."""
    ours, line = write_line("tester", ("coder",), "ours"), "[coder-to-tester]: x\n"
    content, own = f"{ours}{line}{ours}{line}{line}".encode(), {digest_of(ours): 2}
    first, open_ended = parse(content, NAMES, own=own, most=2)
    assert ([type(each) for each in first], open_ended) == ([Own, ChatEntry, Own, ChatEntry], False)
    assert first[-1].end == len(content) - len(line)
    assert parse(content, NAMES, own=own, most=3)[1]


@pytest.mark.parametrize("before", [b"", b"[coder-to-reviewer]: x\n", b"\n"])
@pytest.mark.parametrize("last", [b"[coder-to-tester]: y", b"[coder-to-tester]:\n y", b"[coder-to-tester]: y\n\n"])
def test_a_line_without_its_end_is_read_where_nothing_follows(before: bytes, last: bytes) -> None:
    """It says the same as with a newline, and ends where the text does."""
    items, _ = parse(before + last, NAMES, ended=True)
    whole = last.rstrip(b"\n")
    assert isinstance(items[-1], ChatEntry) and (items[-1].to, items[-1].body) == (("tester",), "y")
    assert items[-1].digest == digest_of(whole.decode())
    assert items[-1].end in (len(before + last), len(before + whole) + 1)


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    """The message is there, and what is odd about it."""
    (entry,) = read(b"[coder-to-reviewer]: caf\xe9\n")
    assert isinstance(entry, ChatEntry)
    assert (entry.body, entry.odd) == ("caf\N{REPLACEMENT CHARACTER}", "has bytes that are not UTF-8")


def test_what_we_wrote_is_known_again() -> None:
    """Once for each time that we wrote it, and also where someone has added to it."""
    line = write_line("coder", ("tester",), "one\ntwo")
    own = {digest_of(line): 1}
    content = f"{line}{line}".encode()
    once, again = parse(content, NAMES, own=own)[0]
    ours, added = parse(f"{line}\n   three\n".encode(), NAMES, own=own)[0]

    assert isinstance(once, Own)
    assert isinstance(again, ChatEntry)
    assert isinstance(ours, Own)
    assert (added.line, type(added)) == (4, ChatProblem)


NAME = st.sampled_from(("coder", "reviewer", "tester", "coder@pr-7", "human", "all"))
TEXT = st.text(st.characters(codec="utf-8")) | st.lists(
    st.sampled_from(["[coder-to-tester]: x", "\n", "\r\n", "\r", " ", "\t", "    ", "]: ", "@", "a", "\x0b", "\u2028"])
).map("".join)


@given(sender=NAME.filter(lambda each: each != "all"), to=st.lists(NAME, min_size=1, unique=True), body=TEXT)
def test_whatever_is_written_reads_back_as_one_message(sender: str, to: list[str], body: str) -> None:
    """The same sender, readers and text, byte for byte, also where the text looks like a line."""
    if not body.strip():
        return
    written = write_line(sender, to, body).encode()
    before, after = b"[tester-to-coder]: before\n", b"[tester-to-coder]: after\n"
    items = read(before + written + after)

    assert [(item.sender, item.to, item.body) for item in items if isinstance(item, ChatEntry)] == [
        ("tester", ("coder",), "before"),
        (sender, tuple(to), body),
        ("tester", ("coder",), "after"),
    ]
    assert items[1].digest == digest_of(written.decode())
    assert items[1].end == len(before + written)


@given(st.binary() | TEXT.map(str.encode), st.integers(0, 60))
def test_no_bytes_do_harm_and_reading_on_finds_the_same(content: bytes, cut: int) -> None:
    """Nothing crashes; and who stops behind a closed message and reads on from there misses and doubles nothing."""
    content += b"\nend\n"
    whole = read(content)
    first, open_ended = parse(content[:cut], NAMES)
    taken = first[:-1] if open_ended else first
    place = taken[-1].end if taken else 0
    line = 1 + content[:place].count(b"\n")
    rest, _ = parse(content[place:], NAMES, line=line)

    assert [(each.line, each.digest) for each in (*taken, *rest)] == [(each.line, each.digest) for each in whole]


@pytest.mark.parametrize("part", [b"[", b"-to-", b"[a-to-b]:\n", b" x\n", b"\n", b"[coder-to-tester]: x\n y\n"])
def test_hostile_files_take_no_longer_than_their_length(part: bytes) -> None:
    """A megabyte of anything is read in a moment."""
    began = time.process_time()
    parse(part * (1_000_000 // len(part)) + b"\n", NAMES, own={"no such digest": 1})

    assert time.process_time() - began < 15
