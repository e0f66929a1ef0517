"""Who is meant, and what can't be a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.address import LONGEST_NAME, Address, check_name
from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Agent

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("alice", Address("alice")),
            ("alice@pr-1", Address("alice", "pr-1")),
            ("@pr-1", Address("", "pr-1")),
            ("7", Address("7")),
        ],
    )
    def test_an_address_is_read(self, text: str, address: Address) -> None:
        """A name, a name in an instance, or a whole instance."""
        assert Address.parse(text) == address
        assert str(address) == text

    @pytest.mark.parametrize("text", ["", "@", "alice@", "a@b@c", "@@x", "a b", "Alice", "@Pr", "a@-b", "a/b@c"])
    def test_what_is_no_address_is_refused(self, text: str) -> None:
        """With a hint that shows one."""
        with pytest.raises(BadInput) as refused:
            Address.parse(text)

        assert refused.value.hint

    @given(NAMES | st.just(""), NAMES | st.just(""))
    def test_an_address_reads_back_as_it_was_written(self, name: str, instance: str) -> None:
        """Writing and reading are each other's opposite."""
        if name or instance:
            address = Address(name, instance)
            assert Address.parse(str(address)) == address

    @given(st.text())
    def test_any_text_is_an_address_or_bad_input(self, text: str) -> None:
        """Nothing else comes out."""
        try:
            assert str(Address.parse(text)) == text
        except BadInput as refused:
            assert str(refused).endswith(".")


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            "",
            "../x",
            "-rf",
            "a/b",
            "a-",
            "a\n",
            "a\0",
            "ä",
            "A",
            "a.b",
            "a_b",
            "٣",
            "x" * 64,
            "x" * 300,
            "--upload-pack=x",
            'zzz";echo${IFS}hi;#',
        ],
    )
    def test_what_could_be_a_path_or_an_option_is_no_name(self, name: str) -> None:
        """The refusal is one line, however long or odd the name is."""
        with pytest.raises(BadInput) as refused:
            check_name(name)

        assert len(str(refused.value)) < 200
        assert str(refused.value).isprintable()

    def test_the_longest_name_is_a_name(self) -> None:
        """It still fits where names are used: in file names and branches."""
        assert check_name("x" * LONGEST_NAME)


class TestBranches:
    @given(NAMES, NAMES | st.just(""), NAMES, NAMES | st.just(""))
    def test_no_two_agents_share_a_branch(self, name: str, instance: str, other: str, other_instance: str) -> None:
        """Different addresses, different branches."""
        one, two = (
            Agent(name=each, instance=where, project="p", provider="x")
            for each, where in ((name, instance), (other, other_instance))
        )

        assert (one.branch == two.branch) == (one.address == two.address)
