"""Values in the commands of setup, as a real shell takes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from windlass.core.template import parse

NASTY = "a  b $(touch pwned) `touch pwned` \"q\" 'q' \\ ; touch pwned # * ${HOME} ${{ x }}\nsecond line"


def run(text: str, value: str, folder: str) -> str:
    script, variables = parse(text)[0].script()
    assert set(variables.values()) == {"x"}
    done = subprocess.run(
        ("sh", "-c", script),
        env={"PATH": "/usr/bin:/bin", **dict.fromkeys(variables, value)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "printf '[%s]' ${{ x }}",
        "printf '[%s]' \"${{ x }}\"",
        "printf '[%s]' '${{ x }}'",
        "printf \"[%s]\" '${{ x }}'",
        "printf '[%s]' \"\\\"\"'' >/dev/null; printf '[%s]' ${{ x }}",
        "printf '[%s]' it\\'s > /dev/null; printf '[%s]' \"${{ x }}\"",
        "y=${{ x }}; printf '[%s]' \"$y\"",
    ],
)
@pytest.mark.parametrize("value", [NASTY, "", "-n", "*"])
def test_a_value_is_one_word_in_any_quotes(tmp_path: Path, text: str, value: str) -> None:
    """Nothing of it is split, expanded or executed."""
    assert run(text, value, str(tmp_path)) == f"[{value}]"
    assert list(tmp_path.iterdir()) == []


def test_a_value_can_stand_within_a_word(tmp_path: Path) -> None:
    """As in a range of commits."""
    assert run("printf '[%s]' ${{ x }}...HEAD a'${{ x }}'b", "m n", str(tmp_path)) == "[m n...HEAD][am nb]"
