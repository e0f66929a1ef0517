"""How to drive coding CLIs: one file per provider, found by its name.

Each module here has a `provider`; what one needs besides that is a package beside it, such as `script`. Scripted agents
start through this file, so it imports little.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from windlass.core.runs.provider import Provider
    from windlass.core.settings.custom_provider import ProviderSettings
    from windlass.core.settings.models import ModelSettings
    from windlass.core.settings.schema import Settings


_PARTS = frozenset(("__init__", "custom", "presence"))
"""Files here that are no providers."""


class FoundProviders:
    """The providers by name. `path` is where their programs are looked for, if not on the PATH."""

    def __init__(self, providers: Mapping[str, Provider], path: str | None = None) -> None:
        self.providers = providers
        """Ours."""
        self.path = path
        self.described: Callable[[], Mapping[str, ProviderSettings]] = dict
        """What the user's settings describe now."""
        self.models: Callable[[], Mapping[str, ModelSettings]] = dict
        """What they say about models."""
        self.environment: Mapping[str, str] = {}
        """Where keys are."""
        self._built: tuple[Mapping[str, ProviderSettings], Mapping[str, Provider]] = ({}, {})

    def accept(self, settings: Settings) -> None:
        """Raises BadInput if these settings describe a provider that can't be."""
        if settings.providers:
            self._build(settings.providers)

    def _every(self) -> dict[str, Provider]:
        described = self.described()
        if described is not self._built[0]:
            self._built = (described, self._build(described) if described else {})
        return {**self.providers, **self._built[1]}

    def _build(self, described: Mapping[str, ProviderSettings]) -> Mapping[str, Provider]:
        from windlass.providers.custom import build  # noqa: PLC0415 - scripted agents start through this file

        return build(described, self.providers)

    def get(self, name: str, /) -> Provider:
        """Raises NotFound with the near miss."""
        found = self._every()
        known = {other: each for each in found.values() for other in (each.name, *each.aliases)}
        if name in known:
            return known[name]
        every = f"The providers are: {', '.join(found)}."
        raise NotFound(f"There is no provider {name}.", hint=f"{near_miss(name, known)} {every}".strip())

    def all(self) -> Iterable[Provider]:
        return self._every().values()

    def require(self, provider: Provider, /, model: str | None = None) -> None:
        """Raises Unavailable, saying how to install it, if its program is not here, or a model can't be asked."""
        if not self._installed(provider):
            needed = f"the program {provider.program}" if provider.program else "an extra of ours"
            raise Unavailable(
                f"The provider {provider.name} needs {needed}, which is not installed.",
                hint=provider.install or f"Install {provider.program}, and see that it is on the PATH.",
            )
        if model is not None:
            provider.ready(model, self._settings(model), lambda name: bool(self.environment.get(name)))

    def by_model(self, model: str, /) -> tuple[str, str]:
        """The provider whose model this is by its name, and what that provider calls it; nothing if it is nobody's."""
        taker = next((each for each in self.all() if each.takes(model)), None)
        if taker is None:
            return "", model
        preferred = self._settings(model).prefer_cli
        if preferred and self._installed(self.get(preferred)):
            return self.get(preferred).name, model.partition("/")[2]
        return taker.name, model

    def _settings(self, model: str) -> ModelSettings:
        from windlass.core.settings.models import settings_for  # noqa: PLC0415 - scripted agents start through this file

        return settings_for(model, self.models())

    def _installed(self, provider: Provider) -> bool:
        if provider.module:
            from importlib.util import find_spec  # noqa: PLC0415 - scripted agents start through this file

            return find_spec(provider.module) is not None
        return not provider.program or shutil.which(provider.program, path=self.path) is not None


def load(path: str | None = None) -> FoundProviders:
    """Every provider of this package."""
    names = sorted(each.stem for each in Path(__file__).parent.glob("*.py") if each.stem not in _PARTS)
    found = [import_module(f"{__name__}.{name}").provider for name in names]
    return FoundProviders({each.name: each for each in found}, path)
