"""Models that are asked without a coding CLI: where each is found, and with which key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Models without a coding CLI, by vendor or by `"vendor/name"`; only in your home's file. See
    [providers.md](providers.md)."""

    base_url: str = ""
    """Where its server is, such as a local one that speaks OpenAI's protocol: `http://127.0.0.1:11434/v1`."""
    key: str = ""
    """The name of your variable with the key. Default: the vendor's usual one; a server of your own may want none."""
    prefer_cli: str = ""
    """The provider that runs these models instead, where its program is installed."""


def settings_for(model: str, known: Mapping[str, ModelSettings]) -> ModelSettings:
    """The settings of a model: its own, or else its vendor's, key by key."""
    own, vendor = known.get(model, ModelSettings()), known.get(model.partition("/")[0], ModelSettings())
    return ModelSettings(
        base_url=own.base_url or vendor.base_url,
        key=own.key or vendor.key,
        prefer_cli=own.prefer_cli or vendor.prefer_cli,
    )
