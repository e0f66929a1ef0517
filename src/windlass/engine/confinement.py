"""Whether a run or a check is kept in a sandbox, and in which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Run
from windlass.core.ports import Ports
from windlass.core.runs.provider import Provider
from windlass.core.runs.redact import Redactor, is_secret_name
from windlass.core.runs.sandbox import (
    DOOR,
    Sandbox,
    decide_sandbox,
    enclosure,
    enclosure_of_checks,
    require,
    require_hold,
    wanted,
    wanted_for_checks,
)
from windlass.core.runs.workdir import Site
from windlass.core.settings.models import settings_for
from windlass.core.settings.schema import SandboxSettings


class Confinements:
    """Keeps runs in their sandbox, and their secrets out of what others read."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.settings = ports.settings

    async def check(self, agent: Agent, project: Project, *, reviews: bool = False) -> None:
        """Refuse an agent that must have a sandbox where there is none, before anything is created."""
        require(wanted(agent, self.settings.at(project.path).sandbox), await self.ports.processes.sandbox_keeper())
        self.hold(agent, await self.keeper(agent, project), reviews=reviews)

    def hold(self, agent: Agent, keeper: str, *, reviews: bool) -> None:
        """Refuse a run that is to read only, if neither its provider nor what keeps it sees to that.

        A person's own command or script may review all the same: nothing that a reviewer writes lands.
        """
        provider = self.ports.providers.get(agent.provider)
        if provider.own or not reviews:
            require_hold(agent, provider, keeper)

    async def keeper(self, agent: Agent, project: Project) -> str:
        """The program that keeps an agent's next run in a sandbox; nothing if none does."""
        mode = wanted(agent, self.settings.at(project.path).sandbox)
        return decide_sandbox(mode, await self.ports.processes.sandbox_keeper())

    def around(self, site: Site, provider: Provider, places: Sequence[str], *, folder: str) -> Sandbox:
        """The sandbox of a run that works at these places and whose own folder is given."""
        reach = [self.ports.git.reach(project, site.agent) for project in site.projects]
        links = ((project, self.settings.at(project.path).worktree.link) for project in site.projects)
        linked = [f"{project.path}/{name}" for project, names in links for name in names]
        return enclosure(
            home=self.ports.home,
            site=site,
            provider=provider,
            places=places,
            readable=(folder, *(path for readable, _ in reach for path in readable), *linked),
            writable=tuple(path for _, writable in reach for path in writable),
            settings=self.settings.at(site.project.path).sandbox,
        )

    def around_setup(self, site: Site, provider: Provider, *, worktree: str) -> Sandbox:
        """The sandbox of a set-up: it may write to the worktree, and has no part in the provider's login, nor a way to
        the daemon."""
        like = self.around(site, provider, (worktree,), folder=worktree)
        more = self.settings.at(site.project.path).sandbox.writable
        readable = tuple(path for path in like.readable if path != f"{self.ports.home}/{DOOR}")
        return replace(like, readable=readable, writable=(worktree, *more), protected=(), links=())

    async def around_checks(self, project: Project, settings: SandboxSettings) -> tuple[str, Sandbox | None]:
        """The program that keeps a project's checks in a sandbox, and that sandbox; nothing if they have none."""
        mode, keeper = wanted_for_checks(settings), await self.ports.processes.sandbox_keeper()
        require(mode, keeper)
        name = decide_sandbox(mode, keeper)
        around = enclosure_of_checks(home=self.ports.home, project=project, settings=settings)
        return name, around if name else None

    def variables(self, project: Project, provider: Provider, model: str) -> tuple[str, ...]:
        """Names of the variables of the user's that a run with this model gets."""
        secrets = provider.secrets if provider.keys is None else (*provider.keys(model), *self._own_key(model))
        return (*provider.variables, *secrets, *self.settings.at(project.path).work.environment)

    def _own_key(self, model: str) -> tuple[str, ...]:
        chosen = settings_for(model, self.settings.at("").models).key
        return (chosen,) if chosen else ()

    async def redactor(self, run: Run, project: Project) -> Redactor:
        """The redactor of a run's secrets: its provider's keys, secret variables and tokens."""
        provider = self.ports.providers.get(run.provider)
        own = self._own_key(run.model) if provider.keys else ()
        named = (variable for variable in self.variables(project, provider, run.model) if is_secret_name(variable))
        theirs = await self.ports.processes.values((*provider.secrets, *own, *named), run.identity)
        return Redactor((*theirs, self.ports.token(run.id), self.ports.token("")))
