"""The place in a chat file: found again when the file was cut, replaced or edited, and never read twice."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core import codec
from windlass.core.messages.chat_file import BEFORE, ReadPosition, Slice, found_again
from windlass.core.messages.chat_line import ChatEntry, Names, digest_of, parse, write_line

NAMES = Names(("coder", "tester"))


def look(content: bytes, offset: int, limit: int = 1 << 20) -> Slice:
    before = content[max(0, offset - BEFORE) : offset]
    return Slice(content[offset : offset + limit], before, len(content))


def line(text: str) -> bytes:
    return write_line("coder", ("tester",), text).encode()


def lines(*texts: str) -> bytes:
    return b"".join(map(line, texts))


def read_on(place: ReadPosition, content: bytes, *, limit: int = 1 << 20) -> tuple[ReadPosition, list[str], list[str]]:
    """Read all that is there; returns the new place, what was said, and the keys."""
    found = look(content, place.offset)
    if not place.fits(found):
        place = found_again(place, lambda offset: look(content, offset, limit))
        found = look(content, place.offset)
    items, _ = parse(found.content, NAMES, line=place.line, own=place.own)
    said, keys = [], []
    for item in items:
        if isinstance(item, ChatEntry):
            said.append(item.body)
            keys.append(place.key(item))
        place = place.past(item)
    return (place.at(found, items[-1].end) if items else place), said, keys


def test_reading_on_finds_only_what_is_new() -> None:
    """Each message once, also where two say the same."""
    place, said, first = read_on(ReadPosition(), lines("one", "two"))
    assert said == ["one", "two"]
    place, said, second = read_on(place, lines("one", "two", "two"))
    assert said == ["two"]
    assert len({*first, *second}) == 3
    assert place.line == 4


def test_reading_again_gives_the_same_keys() -> None:
    """So that what was sent before a crash is known."""
    place, _, _ = read_on(ReadPosition(), lines("zero", "one"))
    _, _, keys = read_on(place, lines("zero", "one", "two", "three"))
    _, _, again = read_on(place, lines("zero", "one", "two", "three", "four"))
    _, _, edited = read_on(place, lines("zero", "an edit", "one", "two", "three"))

    assert keys == again[:2]
    assert keys == edited


CHANGED = {
    "cut at the end": (lines("one", "two"), []),
    "cut to nothing": (b"", []),
    "emptied and begun anew": (lines("four"), ["four"]),
    "edited at the top": (lines("ONE", "two", "three", "four"), ["ONE", "four"]),
    "edited below the top": (lines("one", "TWO", "three", "four"), ["four"]),
    "written anew": (lines("new", "two", "newer", "one", "one", "newest"), ["new", "newer", "newest"]),
    "written anew with an old end": (lines("new", "newer", "three"), ["new", "newer"]),
    "without its first": (lines("two", "three", "four"), ["four"]),
    "without its last": (lines("one", "two", "four"), ["four"]),
    "replaced by itself": (lines("one", "two", "three"), []),
    "the same with more blank lines": (lines("one") + b"\n\n" + lines("two", "three"), []),
}


@pytest.mark.parametrize("case", CHANGED)
@pytest.mark.parametrize("limit", [1 << 20, 40])
def test_a_changed_file_is_not_read_twice(case: str, limit: int) -> None:
    """Only what follows the last that is known is new; and what is unknown, if the file begins so."""
    place, _, _ = read_on(ReadPosition(), lines("one", "two", "three"))
    content, new = CHANGED[case]
    _, said, _ = read_on(place, content, limit=limit)

    assert said == new


def test_a_long_file_that_is_cut_to_its_beginning_is_old() -> None:
    """Also where none of the messages is left that are remembered."""
    many = [f"message {number}" for number in range(500)]
    place, _, _ = read_on(ReadPosition(), lines(*many))

    assert len(place.recent) == 64
    assert read_on(place, lines(*many[:100]))[1] == []
    assert read_on(place, lines("new", "newer"))[1] == ["new", "newer"]


@pytest.mark.parametrize(("begin", "end"), [(100, 500), (100, 440), (400, 440), (470, 480), (470, 500)])
def test_a_long_file_that_is_cut_at_its_front_is_old(begin: int, end: int) -> None:
    """Also where it begins with messages that are no longer remembered."""
    many = [f"message {number}" for number in range(500)]
    place, _, _ = read_on(ReadPosition(), lines(*many))

    assert read_on(place, lines(*many[begin:end], "more"))[1] == ["more"]


def test_new_words_beside_old_ones_are_read_also_after_many() -> None:
    """The old ones are among those that are remembered."""
    many = [f"message {number}" for number in range(500)]
    place, _, _ = read_on(ReadPosition(), lines(*many))

    assert read_on(place, lines("new", many[-1], "newer", many[-2]))[1] == ["new", "newer"]


def test_a_known_line_that_stands_there_often_is_read_in_time() -> None:
    """Each of thousands is known, in a time that grows with their number, and the place that is kept stays small."""

    def taken(size: int) -> float:
        place, _, _ = read_on(ReadPosition(), lines("x", "y"))
        content, begin = line("new") + line("x") * size + line("y"), time.process_time()
        found = found_again(place, lambda offset: look(content, offset))
        assert len(codec.encode(found)) < 1000
        assert read_on(place, content)[1] == ["new"]
        return time.process_time() - begin

    assert taken(16_000) < 20 * taken(2_000)


def test_a_crash_before_a_file_that_was_written_anew_is_read_changes_nothing() -> None:
    """What is known is found again, once, and what we owe is still owed."""
    owed = ((digest_of(line("owed").decode()), "m1"),)
    place, _, _ = read_on(ReadPosition(), lines("one", "two"))
    content = lines("new", "two", "owed")
    once = found_again(replace(place, owed=owed), lambda offset: look(content, offset))
    again = found_again(once, lambda offset: look(content, offset))

    assert again == once
    place, said, _ = read_on(again, content)
    assert (said, place.owed) == (["new"], ())
    assert read_on(place, content + line("two"))[1] == ["two"]


def test_a_file_that_comes_back_is_not_read_twice() -> None:
    """An editor may empty a file before it writes it again."""
    content = lines("one", "two")
    place, _, _ = read_on(ReadPosition(), content)
    place, said, _ = read_on(place, b"")
    assert said == []
    assert read_on(place, content + line("three"))[1] == ["three"]


def test_a_file_that_begins_anew_has_no_past() -> None:
    """Whatever is written there is new, under keys of its own; also if the file is replaced then."""
    place, _, keys = read_on(ReadPosition(), lines("one", "two"))
    place, said, again = read_on(place.anew(), lines("one"))
    assert (said, len({*keys, *again})) == (["one"], 3)
    place, _, _ = read_on(place.anew(), lines("three"))
    assert read_on(place, lines("one", "two"))[1] == ["one", "two"]


def test_what_we_wrote_is_settled_when_it_is_read() -> None:
    """Twice the same is owed twice."""
    text = write_line("coder", ("tester",), "hi")
    owed = ((digest_of(text), "m1"), (digest_of(text), "m2"))
    place, said, _ = read_on(ReadPosition(owed=owed), text.encode())
    assert (said, place.owed) == ([], owed[1:])
    place, said, _ = read_on(place, text.encode() * 3)
    assert (said, place.owed) == (["hi"], ())


@given(st.lists(st.lists(st.sampled_from(["one", "two", "three\nlines", "x" * 600])), max_size=6))
def test_however_a_file_grows_each_message_is_read_once(parts: list[list[str]]) -> None:
    """In order, under a key of its own."""
    place, content, read, keys = ReadPosition(), b"", list[str](), list[str]()
    for part in parts:
        content += lines(*part)
        place, said, named = read_on(place, content)
        read += said
        keys += named

    assert read == [each for part in parts for each in part]
    assert len(set(keys)) == len(keys)
