"""List prices of tokens, for programs that do not tell their cost. Runs are priced offline."""

from __future__ import annotations

import re
from collections.abc import Mapping

from windlass.core.nouns.run import Usage

AS_OF = "2026-10-15"
"""When these prices were looked up."""

OPENAI: Mapping[str, tuple[float, float, float]] = {
    "gpt-5.6": (4.0, 0.4, 20.0),
    "gpt-5.6-sol": (4.0, 0.4, 20.0),
    "gpt-5.6-terra": (2.0, 0.2, 12.0),
    "gpt-5.6-luna": (0.2, 0.02, 1.2),
    "gpt-5.5": (5.0, 0.5, 30.0),
    "gpt-5.5-codex": (5.0, 0.5, 30.0),
    "gpt-5.4": (2.5, 0.25, 15.0),
    "gpt-5.4-mini": (0.75, 0.075, 4.5),
    "gpt-5.4-nano": (0.2, 0.02, 1.25),
    "gpt-5.3-codex": (1.75, 0.175, 14.0),
    "gpt-5.2": (1.75, 0.175, 14.0),
    "gpt-5.2-codex": (1.75, 0.175, 14.0),
    "gpt-5.1": (1.25, 0.125, 10.0),
    "gpt-5.1-codex": (1.25, 0.125, 10.0),
    "gpt-5.1-codex-max": (1.25, 0.125, 10.0),
    "gpt-5.1-codex-mini": (0.25, 0.025, 2.0),
    "gpt-5": (1.25, 0.125, 10.0),
    "gpt-5-codex": (1.25, 0.125, 10.0),
    "gpt-5-mini": (0.25, 0.025, 2.0),
}
"""Dollars for a million tokens: new input, remembered input, output. Surcharges for long prompts are left out."""

_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def price(prices: Mapping[str, tuple[float, float, float]], model: str, usage: Usage) -> float:
    """The cost of a usage in dollars; 0 for a model that is not listed."""
    fresh, cached, output = prices.get(_DATED.sub("", model), (0.0, 0.0, 0.0))
    new = max(0, usage.input_tokens - usage.cached_tokens)
    return (new * fresh + usage.cached_tokens * cached + usage.output_tokens * output) / 1_000_000
