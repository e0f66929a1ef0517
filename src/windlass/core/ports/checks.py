"""The checks of a project, as the gate runs them."""

from __future__ import annotations

from typing import Protocol

from windlass.core.nouns.change import Candidate, CheckResult
from windlass.core.nouns.project import Project
from windlass.core.settings.schema import CheckSettings


class Checks(Protocol):
    """The project's own commands."""

    async def run(
        self, project: Project, candidate: Candidate, settings: CheckSettings, started_at: float, /
    ) -> tuple[CheckResult, str]:
        """Run setup and command on exactly the candidate's tree. Returns the verdict and the kept output."""
        ...
