"""The providers that this machine knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from windlass.core.runs.provider import Provider


class Providers(Protocol):
    def get(self, name: str, /) -> Provider:
        """Raises NotFound with the near miss."""
        ...

    def all(self) -> Iterable[Provider]: ...

    def require(self, provider: Provider, /, model: str | None = None) -> None:
        """Raises Unavailable, saying how to install it, if its program is not here, or a model can't be asked."""
        ...

    def by_model(self, model: str, /) -> tuple[str, str]:
        """The provider whose model this is by its name, and what that provider calls it; nothing if it is nobody's."""
        ...
