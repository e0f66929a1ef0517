"""The checks port in memory: a command is a function of the files that it is run on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fakes.git import FakeGit
from fakes.objects import Files
from windlass.core.errors import BadInput
from windlass.core.nouns.change import Candidate, CheckResult
from windlass.core.nouns.project import Project
from windlass.core.runs.sandbox import Sandbox
from windlass.core.settings.schema import CheckSettings

Program = Callable[[Files], tuple[int | None, str]]
"""What a command says about some files: its exit code, or None if it ended without one, and its output."""


class FakeChecks:
    """Runs commands that a test has given, on the files of the candidate's commit."""

    def __init__(self, git: FakeGit, programs: Mapping[str, Program]) -> None:
        self.git = git
        self.programs = programs
        self.results: list[CheckResult] = []
        """Every verdict that was given."""

    async def run(
        self,
        project: Project,
        candidate: Candidate,
        settings: CheckSettings,
        started_at: float,
        /,
        *,
        sandbox: Sandbox | None,
    ) -> tuple[CheckResult, str]:
        del sandbox  # nothing is executed here
        if not settings.command.strip():
            raise BadInput(f"{project.name} has no check command.", hint="Set one.")
        code, output = self._execute(settings, self.git.objects.files(candidate.commit))
        reason = "ended without an exit code" if code is None else f"exit code {code}"
        result = CheckResult(
            command=settings.command,
            tree=candidate.tree,
            passed=code == 0,
            exit_code=code,
            seconds=0.0,
            started_at=started_at,
            reason="" if code == 0 else reason,
        )
        self.results.append(result)
        return result, output

    def _execute(self, settings: CheckSettings, files: Files) -> tuple[int | None, str]:
        program = self.programs.get(settings.command)
        return program(files) if program else (127, f"sh: {settings.command}: not found\n")
