"""What is said to a workflow after `--`."""

from __future__ import annotations

import pytest

from windlass.core.errors import BadInput
from windlass.core.files.params import Param, ParamKind, bind, value_of

PARAMS = (
    Param(name="base", default="main", required=False),
    Param(name="rounds", kind=ParamKind.INT, default="3", required=False),
    Param(name="ratio", kind=ParamKind.NUMBER, required=False),
    Param(name="fast", kind=ParamKind.BOOL, default="false", required=False),
    Param(name="depth", kind=ParamKind.CHOICE, choices=("low", "high")),
)
GIVEN = ("--depth", "low")


def bound(*words: str) -> dict[str, str]:
    return bind(PARAMS, (*GIVEN, *words))


class TestBind:
    def test_what_is_not_said_has_its_default(self) -> None:
        """And what has none, and is not needed, is empty."""
        assert bound() == {"base": "main", "rounds": "3", "ratio": "", "fast": "false", "depth": "low"}

    @pytest.mark.parametrize(
        ("words", "name", "value"),
        [
            (("--base", "dev"), "base", "dev"),
            (("--base=dev"), "base", "dev"),
            (("--base="), "base", ""),
            (("--base", "--dashes"), "base", "--dashes"),
            (("--base", "${{ x }}"), "base", "${{ x }}"),
            (("--rounds", "+7"), "rounds", "7"),
            (("--rounds=-7"), "rounds", "-7"),
            (("--ratio", "1e-3"), "ratio", "1e-3"),
            (("--fast",), "fast", "true"),
            (("--fast", "true"), "fast", "true"),
            (("--fast", "False"), "fast", "false"),
            (("--fast=false",), "fast", "false"),
            (("--no-fast",), "fast", "false"),
            (("--fast", "--base", "x"), "base", "x"),
            (("--depth", "high"), "depth", "high"),
        ],
    )
    def test_every_way_to_say_it(self, words: tuple[str, ...] | str, name: str, value: str) -> None:
        """With a space, with an equals sign, and flags by themselves; the last one counts."""
        assert bound(*([words] if isinstance(words, str) else words))[name] == value

    def test_all_that_is_wrong_is_said_at_once(self) -> None:
        """With the near miss, and with what there is."""
        with pytest.raises(BadInput) as caught:
            bind(PARAMS, ("--bsae", "dev", "--rounds", "010", "x", "--fast=no", "--ratio"))

        assert str(caught.value) == (
            "There is no parameter --bsae. Did you mean base? 'x' belongs to no parameter. "
            "--ratio needs a value. --rounds 010 begins with a zero, so some YAML readers "
            "take it for octal (8). Write 10. --fast must be true or false, not no: only some YAML readers take that "
            "for false. Write false. --depth is missing."
        )
        assert caught.value.hint.startswith("Parameters: --base STRING, --rounds INT")

    def test_a_workflow_without_parameters_says_so(self) -> None:
        """Instead of listing none."""
        with pytest.raises(BadInput) as caught:
            bind((), ("--base", "x"))
        assert caught.value.hint == "This workflow takes no parameters."


class TestNumbers:
    @pytest.mark.parametrize(
        "text", ["12:30", "1:2:3", "0755", "00", "1_000", "1.5", "0x1f", "ten", "", "9" * 30, "\u0661"]
    )
    def test_what_readers_of_yaml_disagree_on_is_no_whole_number(self, text: str) -> None:
        """Octal, sexagesimal, underscores, hexadecimal and foreign digits are refused, not guessed."""
        with pytest.raises(BadInput):
            value_of(ParamKind.INT, text)

    @pytest.mark.parametrize("text", ["nan", "inf", ".inf", "1e999", "12:30", "1,5", "."])
    def test_numbers_are_finite(self, text: str) -> None:
        """And written with a point."""
        with pytest.raises(BadInput):
            value_of(ParamKind.NUMBER, text)
