"""One request, with all that a verb needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from msgspec import Meta
from starlette.requests import Request as HttpRequest

from windlass.core.address import Address
from windlass.core.invariants import Finding
from windlass.core.messages.members import Speaker
from windlass.core.nouns.project import Project
from windlass.core.requests import Request
from windlass.core.runs.provider import Presence
from windlass.engine import Engine
from windlass.engine.messages.callers import CallerInProject

LONGEST_WAIT = 60.0
"""Seconds that one request may wait for something to be said; whoever has more time asks again."""

Answer = dict[str, Any]
Folder = Annotated[str, Meta(description="A folder of the project; an agent needs none, for it is in its own.")]
Seconds = Annotated[float, Meta(ge=0)]
Texts = Annotated[tuple[str, ...], Meta(min_length=1)]
Whole = Annotated[int, Meta(ge=0, lt=10**18)]


class PlaceQuery(Request):
    path: Folder = ""


class ListQuery(PlaceQuery):
    all: bool = False


class PageQuery(Request):
    """Which part of long lists: at most `limit` entries, after the first `since`."""

    since: Whole = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100

    @property
    def part(self) -> slice:
        return slice(self.since, self.since + self.limit)


class PlaceRequest(Request):
    path: Folder


class SettingsEditor(Protocol):
    """Settings as people see and change them."""

    def shown(self, path: str, /) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Every setting in force, and the files they come from."""
        ...

    def change(self, path: str, key: str, text: str, /) -> tuple[Any, str]:
        """Set one, in the project's file or (no path) the home's. Returns the value and the file."""
        ...

    def write_project(self, project: Project, /, *, name: str, main: str, command: str, setup: str) -> str:
        """Write a project's settings file; what is set already stays. Returns its path."""
        ...

    def guess_checks(self, path: str, /) -> Mapping[str, str]:
        """The checks that a repository seems to have: command, setup, because."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext:
    """What the surfaces know about the daemon that serves them."""

    version: str
    pid: int
    started: float
    """On the monotonic clock."""
    home: str
    editor: SettingsEditor
    presences: Callable[[], Awaitable[Sequence[Presence]]]
    """Looks which providers are here."""
    examine: Callable[[str], Awaitable[Sequence[Finding]]]
    check: Callable[[], AsyncIterator[Finding]]
    """Looks at every promise, one by one."""
    leave: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls what with which words."""

    engine: Engine
    context: AppContext
    request: HttpRequest
    caller: Speaker
    """As the entrance admitted it."""

    @property
    def now(self) -> float:
        return self.engine.ports.clock.now()

    @property
    def id(self) -> str:
        return str(self.request.path_params["id"])

    @property
    def name(self) -> str:
        """The agent that the path names, as an address."""
        return str(Address.parse(self.request.path_params["name"]))

    @property
    def viewer(self) -> str:
        """Who looks: an agent, by its id; nothing for a person, who may see everything."""
        return self.caller.address if self.caller.run else ""

    async def agent(self) -> str:
        """The id of the agent that the path names. Raises NotFound with the near miss."""
        return (await self.engine.directory.check_agent(self.name)).id

    async def in_project(self, path: str) -> CallerInProject:
        """The caller, in the project of a folder."""
        return await self.engine.callers.identify(self.caller, path=path)

    async def sender(self, path: str, name: str, readers: Iterable[str], task: str = "") -> CallerInProject:
        """The caller who sends or writes: in a new project, too, or in the one of the readers if no folder is named."""
        given = {"path": path, "name": name, "task": task}
        return await self.engine.callers.identify(self.caller, **given, readers=readers, register=True)

    async def place(self, path: str) -> str:
        """The folder that is meant: an agent's is its project's own."""
        return (await self.engine.projects.get(self.caller.project)).path if self.caller.run else path

    async def top(self, path: str) -> str:
        """The top folder of the repository at a path; nothing for no path."""
        place = await self.place(path)
        return await self.engine.projects.locate(place) if place else ""

    async def project(self, path: str) -> str:
        """The id of the project at a path, or an agent's own; nothing for no path, and `none` where no project is."""
        if self.caller.run or not path:
            return self.caller.project
        project = await self.engine.projects.known_at(path)
        return project.id if project else "none"

    def listing(self, items: Sequence[Any]) -> Answer:
        """A list, and when it was true."""
        return {"as_of": self.now, "items": items}
