"""Where agents work, from the rows."""

from __future__ import annotations

from windlass.core.errors import NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.project import Project
from windlass.core.ports.store import Reading
from windlass.core.runs.workdir import Site
from windlass.engine.records.lookup import get


def site_of(store: Reading, key: str) -> Site:
    """An agent with the projects that it works in."""
    agent = get(store, Agent, key)
    projects = [store.find(Project, project) for project in agent.projects]
    known = tuple(project for project in projects if project is not None)
    if len(known) < len(projects):
        raise NotFound(f"{key} has lost one of its projects.")
    return Site(agent, known)
