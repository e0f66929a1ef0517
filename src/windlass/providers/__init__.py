"""How to drive coding CLIs: one file per provider, found by its name.

Each module here has a `provider`; a package such as `script` holds what one provider needs. Scripted agents start
through this file, so it imports little.
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
"""Modules here that are not providers."""


class FoundProviders:
    """The providers by name. `path` is where their programs are looked for, if not on the PATH."""

    def __init__(self, providers: Mapping[str, Provider], path: str | None = None) -> None:
        self.providers = providers
        """The built-in ones."""
        self.path = path
        self.described: Callable[[], Mapping[str, ProviderSettings]] = dict
        """The providers of the user's settings, as they are now."""
        self.models: Callable[[], Mapping[str, ModelSettings]] = dict
        """The models of the user's settings, as they are now."""
        self.environment: Mapping[str, str] = {}
        """Variables with keys."""
        self._built: tuple[Mapping[str, ProviderSettings], Mapping[str, Provider]] = ({}, {})

    def accept(self, settings: Settings) -> None:
        """Raise BadInput if these settings describe an impossible provider."""
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
        found = self._every()
        known = {alias: provider for provider in found.values() for alias in (provider.name, *provider.aliases)}
        if name in known:
            return known[name]
        every = f"The providers are: {', '.join(found)}."
        raise NotFound(f"There is no provider {name}.", hint=f"{near_miss(name, known)} {every}".strip())

    def all(self) -> Iterable[Provider]:
        return self._every().values()

    def require(self, provider: Provider, /, model: str | None = None) -> None:
        if not self._installed(provider):
            needed = f"the program {provider.program}" if provider.program else "an extra of ours"
            raise Unavailable(
                f"The provider {provider.name} needs {needed}, which is not installed.",
                hint=provider.install or f"Install {provider.program}, and see that it is on the PATH.",
            )
        if model is not None:
            provider.ready(model, self._settings(model), lambda name: bool(self.environment.get(name)))

    def by_model(self, model: str, /) -> tuple[str, str]:
        taker = next((provider for provider in self.all() if provider.takes(model)), None)
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
    names = sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem not in _PARTS)
    found = [import_module(f"{__name__}.{name}").provider for name in names]
    return FoundProviders({provider.name: provider for provider in found}, path)
