"""Blotting secrets out, however they are cut."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.runs.redact import Redactor, is_secret_name
from windlass.core.runs.signal import SaidDone

SECRET = "sk-live-0123456789"


def fed(secrets: list[str], content: bytes, cuts: list[int]) -> bytes:
    """What is kept of a content that is read up to each cut, always from where the last reading ended."""
    blotter, kept = Redactor(secrets), b""
    for end in [*sorted(min(cut, len(content)) for cut in cuts), len(content)]:
        kept += blotter.feed(content[len(kept) : max(end, len(kept))])
    return kept + blotter.feed(content[len(kept) :], last=True)


def test_a_secret_becomes_as_many_stars() -> None:
    """So that what follows it stands where it stood."""
    clean = Redactor([SECRET]).feed(f"key={SECRET}, again {SECRET}\n".encode())
    assert clean == b"key=" + b"*" * len(SECRET) + b", again " + b"*" * len(SECRET) + b"\n"


def test_the_beginning_of_a_secret_is_held_back() -> None:
    """Until more comes, or nothing more can."""
    blotter = Redactor([SECRET])
    assert blotter.feed(b"key=sk-live") == b"key="
    assert blotter.feed(b"key=sk-live", last=True) == b"key=sk-live"
    assert blotter.feed(b"key=sk-live\n") == b"key=sk-live\n"


@given(
    st.lists(st.sampled_from(["abcabcab", "abcabcabXY", "bbbbbbbb", "cabcabca", "abcabcabcabc"]), min_size=1),
    st.lists(st.sampled_from(["abc", "ab", "abcabcab", "bbbb", "cabca", "X", "Y", "c"]), max_size=12).map("".join),
    st.lists(st.integers(0, 60), max_size=8),
)
def test_cuts_make_no_difference(secrets: list[str], text: str, cuts: list[int]) -> None:
    """Secrets that overlap, hold each other or begin alike leave nothing, wherever the reading stops."""
    content = text.encode()
    kept = fed(secrets, content, cuts)
    assert kept == Redactor(secrets).feed(content, last=True)
    assert len(kept) == len(content)
    assert not any(secret.encode() in kept for secret in secrets)


def test_a_secret_as_json_writes_it_is_found() -> None:
    """Programs print their events as JSON."""
    secret = 'pass"word\\ü'
    for plain in (True, False):
        line = json.dumps({"text": f"it is {secret}."}, ensure_ascii=plain)
        clean = Redactor([secret]).text(line)
        assert len(clean.encode()) == len(line.encode())
        assert "word" not in clean


def test_short_values_are_no_secrets() -> None:
    """`1` or `true` in a variable would blot out half of what is said."""
    assert not Redactor(["true", "1234567", ""])
    assert Redactor(["12345678"])


@dataclass(frozen=True)
class Thing:
    words: tuple[str, ...]
    number: int


def test_values_are_blotted_through_and_through() -> None:
    """Texts in tuples, mappings and dataclasses; what has none stays the very same."""
    blotter = Redactor([SECRET])
    stars = "*" * len(SECRET)
    assert blotter.whole({"a": [f"x {SECRET}", 3], SECRET: None}) == {"a": [f"x {stars}", 3], stars: None}
    assert blotter.whole(Thing((SECRET,), 1)) == Thing((stars,), 1)
    assert blotter.whole(SaidDone(result=f"used {SECRET}")) == SaidDone(result=f"used {stars}")
    assert blotter.whole(None) is None


def test_names_of_secrets_are_known() -> None:
    """By their last or first word, not by a part of one."""
    assert all(map(is_secret_name, ("OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "SECRET_KEY_BASE", "GH_PAT")))
    assert not any(map(is_secret_name, ("PATH", "KEYBOARD", "MONKEY", "XDG_DATA_HOME", "COMPAT")))
