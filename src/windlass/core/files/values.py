"""Values as people write them in a file or after a flag. What YAML readers take for different values is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput

_INT = re.compile(r"[+-]?\d+", re.ASCII)
_OCTAL = re.compile(r"[+-]?0[0-9_]+", re.ASCII)
_SEXAGESIMAL = re.compile(r"[+-]?\d+(?::[0-5]?\d)+(?:\.\d*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_BOOLS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|m|min|h|d)?", re.ASCII)
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def truth(text: str) -> bool:
    """True or false. Raises BadInput for `yes`, `on` and the like."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if meant := _BOOLS.get(text.lower()):
        raise BadInput(
            f"must be true or false, not {text}: only some YAML readers take that for {meant}.", hint=f"Write {meant}."
        )
    raise BadInput(f"must be true or false, not {text!r}.")


def whole_number(text: str) -> int:
    """A whole number. Raises BadInput for octal and clock-like ones."""
    _refuse_ambiguous(text)
    if not _INT.fullmatch(text) or len(text) > 18:
        raise BadInput(f"must be a whole number, not {text!r}.")
    return int(text)


def number(text: str) -> float:
    """A finite number. Raises BadInput for octal and clock-like ones."""
    _refuse_ambiguous(text)
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise BadInput(f"must be a number, not {text!r}.")
    return float(text)


def one_of(word: str, known: Sequence[str]) -> str:
    """One of some words. Raises BadInput with the near miss."""
    if word not in known:
        raise BadInput(f"must be one of {', '.join(known)}, not {word!r}.", hint=near_miss(word, known))
    return word


def seconds(text: str) -> float:
    """A span of time such as 90s, 10m or 2h. Raises BadInput."""
    found = _DURATION.fullmatch(text.strip())
    span = float(found["number"]) * _SECONDS[found["unit"]] if found else 0.0
    if not 0 < span < 1e9:
        clock = " Some YAML readers take it for a number to the base of 60." if ":" in text else ""
        raise BadInput(f"{text.strip()!r} is no span of time.{clock}", hint="Write 90s, 10m or 2h.")
    return span


def _refuse_ambiguous(text: str) -> None:
    if _SEXAGESIMAL.fullmatch(text):
        raise BadInput(
            f"{text} is a number to the base of 60 for some YAML readers, and a time for people.",
            hint="Write a plain number, or put it in quotes where a text is wanted.",
        )
    if _OCTAL.fullmatch(text):
        octal = f"{int(text.replace('_', ''), 8)}" if not set(text) & {"8", "9"} else "no number"
        raise BadInput(
            f"{text} begins with a zero, so some YAML readers take it for octal ({octal}).",
            hint=f"Write {text.replace('_', '').lstrip('+-').lstrip('0') or '0'}.",
        )
