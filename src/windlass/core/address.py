"""Who is meant: `coder`, `coder@pr-7`, or everyone in `@pr-7`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from windlass.core.errors import BadInput

LONGEST_NAME = 63
RESERVED = frozenset({"human", "system", "server", "developer", "user", "all", "main"})
"""Names of the person, of Windlass, of everyone and of a project's own channel: no agent and no instance has them."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A name, an instance, or a name in an instance."""

    name: str = ""
    instance: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `name`, `name@instance` or `@instance`."""
        name, at, instance = text.partition("@")
        if not text or "@" in instance or (at and not instance):
            raise BadInput(f"{text!r} is not an address.", hint="Write name, name@instance or @instance.")
        return cls(name and check_name(name), instance and check_name(instance))

    def __str__(self) -> str:
        return f"{self.name}@{self.instance}" if self.instance else self.name


def check_name(name: str) -> str:
    """Return the name, or say what is wrong with it."""
    if len(name) > LONGEST_NAME:
        raise BadInput(f"The name {name[:20]!r}… has {len(name)} characters; at most {LONGEST_NAME} are allowed.")
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} is not a name.", hint="A name has lower-case letters, digits and hyphens, like quick-otter."
        )
    return name


def own_name(name: str) -> str:
    """Return the name, if an agent or an instance may have it. Raises BadInput."""
    if check_name(name) in RESERVED:
        raise BadInput(f"{name} is reserved.", hint="Choose another name.")
    return name


def is_own_name(name: str) -> bool:
    try:
        return bool(own_name(name))
    except BadInput:
        return False


HUMAN = Address("human")
SYSTEM = Address("system")
