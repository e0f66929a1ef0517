"""Run a project's checks as everyone does who runs them: guarded, in their sandbox, with their tests counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from windlass.core.display import some
from windlass.core.gate.guarded_files import SETTINGS, GuardedFile, Guards
from windlass.core.nouns.change import Candidate, CheckResult
from windlass.core.nouns.counted_tests import tally
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.settings.schema import Guarding, Settings
from windlass.engine.confinement import Confinements


class CheckRuns:
    """Runs checks for the gate, for main's health, and for an agent that asks before it is done."""

    def __init__(self, ports: Ports) -> None:
        self.git = ports.git
        self.checks = ports.checks
        self.clock = ports.clock
        self.always = (SETTINGS, *ports.library.guarded)
        self.confinement = Confinements(ports)

    async def guard(self, project: Project, candidate: Candidate, settings: Settings) -> GuardedFile | None:
        """The first file of a candidate for which a person must have looked at it before it is tested."""
        twice = settings.gate.guard is Guarding.TWICE
        found = await self._guarded(project, candidate, settings)
        return next((file for file in found if not (twice and file.judges)), None)

    async def judges(self, project: Project, settings: Settings, stack: Iterable[Candidate]) -> tuple[str, ...]:
        """Files of these candidates that decide how they are tested, where they are to be tested without, too."""
        if settings.gate.guard is Guarding.HOLD:
            return ()
        found = [file for candidate in stack for file in await self._guarded(project, candidate, settings)]
        return tuple(dict.fromkeys(file.name for file in found))

    async def run(
        self, project: Project, candidate: Candidate, settings: Settings, judges: Sequence[str] = (), *, main: str = ""
    ) -> tuple[CheckResult, str]:
        """Run them on one tree; before that with main's copy of the judges among its files, and both must pass.

        Main's go first, so that they find nothing that those of the change have left.

        Raises Unavailable if they must have a sandbox and there is none.
        """
        if judges:
            mixed = await self.git.mixed(project, candidate, main, judges)
            first, said = await self._once(project, mixed, settings)
            if not first.passed:
                reason = f"{first.reason}, with main's {some(judges)}"
                return replace(first, tree=candidate.tree, reason=reason), said
        return await self._once(project, candidate, settings)

    async def _once(self, project: Project, candidate: Candidate, settings: Settings) -> tuple[CheckResult, str]:
        keeper, around = await self.confinement.around_checks(project, settings.sandbox)
        now = self.clock.now()
        result, output = await self.checks.run(project, candidate, settings.checks, now, sandbox=around)
        return replace(result, tests=tally(output), sandbox=keeper), output

    async def _guarded(self, project: Project, candidate: Candidate, settings: Settings) -> list[GuardedFile]:
        guards = Guards(settings, self.always, await self.git.links(project, candidate.before))
        names = guards.suspects(candidate.files)
        if not names:
            return []
        before = await self.git.texts(project, candidate.before, names)
        after = await self.git.texts(project, candidate.commit, names)
        unread = {name for texts in (before, after) for name, text in texts.items() if text is None}
        found = (
            guards.judge_unread(name) if name in unread else guards.judge(name, before.get(name), after.get(name))
            for name in names
        )
        return [file for file in found if file]
