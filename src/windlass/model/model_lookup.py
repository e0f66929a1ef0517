"""The model itself: found by `vendor/name` in the library, with the key and the address that it was given."""

from __future__ import annotations

import inspect
import os
from typing import Any

from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from windlass.core.errors import BadInput

NO_KEY = "no-key"
"""The key for a server that wants none."""


def build(name: str, *, base_url: str = "", protocol: str = "", key: str = "") -> Model:
    """The model of this name, at the vendor's own address or at another one; `key` names the variable with its key.
    `protocol` is the library's name for what is spoken there, if that is not the vendor's."""
    vendor, slash, model = name.partition("/")
    if not (vendor and slash and model):
        raise BadInput(f"{name!r} is no model.", hint="Write it as vendor/name.")

    def provider(of: str) -> Provider[Any]:
        return _provider(of, base_url=base_url, key=os.environ.get(key, "") if key else "")

    return infer_model(f"{protocol or vendor}:{model}", provider)


def _provider(vendor: str, *, base_url: str, key: str) -> Provider[Any]:
    try:
        made = infer_provider_class(vendor)
    except ValueError:
        raise BadInput(f"The library has no vendor {vendor}.") from None
    takes = inspect.signature(made).parameters
    if base_url and "base_url" not in takes:
        raise BadInput(f"Models of {vendor} have no address of their own (base_url).")
    given = {"base_url": base_url, "api_key": key or (NO_KEY if base_url else "")}
    return made(**{name: value for name, value in given.items() if value and name in takes})
