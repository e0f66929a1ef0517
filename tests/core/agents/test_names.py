"""Names for agents."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.address import RESERVED, check_name
from windlass.core.agents.names import ADJECTIVES, ANIMALS, pick


class TestPick:
    @given(st.integers())
    def test_a_name_is_always_a_good_one(self, seed: int) -> None:
        """An adjective and an animal, that may be used as an address."""
        name = pick(set[str]().__contains__, random.Random(seed).random)

        adjective, animal = name.split("-")
        assert check_name(name) == name
        assert (adjective in ADJECTIVES, animal in ANIMALS) == (True, True)

    def test_names_do_not_repeat(self) -> None:
        """Five hundred agents have five hundred names."""
        taken: set[str] = set()
        source = random.Random(7)
        for _ in range(500):
            name = pick(taken.__contains__, source.random)
            assert name not in taken
            taken.add(name)

    def test_names_never_run_out(self) -> None:
        """When chance finds no free one, a number makes it free."""
        taken = {f"{adjective}-{animal}" for adjective in ADJECTIVES for animal in ANIMALS}

        first = pick(taken.__contains__, lambda: 0.0)
        second = pick((taken | {first}).__contains__, lambda: 0.0)

        assert (first, second) == ("able-adder-2", "able-adder-3")
        assert check_name(first)

    def test_the_words_are_fit_for_names(self) -> None:
        """Each stands once, is plain, and no word is reserved."""
        for words in (ADJECTIVES, ANIMALS):
            assert len(words) == len(set(words))
            assert all(word.isascii() and word.isalpha() and word.islower() for word in words)
            assert not RESERVED & set(words)
