"""Every error this project raises on purpose.

WindlassError
├── NotFound          nothing has that name
├── Conflict          someone else got there first
│   ├── TakenBack     it stands on commits that main has lost
│   └── Unfit         it could not land on any main
├── NotAllowed        the rules forbid the step
├── BadInput          a file or an argument does not say what it must
└── Unavailable       the outside world said no; trying again later may help
    ├── TimedOut      it took longer than it may
    └── Unanswered    whoever was asked will not answer

The message is one sentence for people; `hint` says what to do next.
"""

from __future__ import annotations


class WindlassError(Exception):
    """The root. Callers choose by meaning, not by origin."""

    hint = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.hint = hint


class NotFound(WindlassError):
    """Nothing has that name."""

    hint = "Run `windlass list --all` to see what exists."


class Conflict(WindlassError):
    """Someone else got there first."""


class TakenBack(Conflict):
    """It stands on commits that main had, and that a person has taken out of it."""


class Unfit(Conflict):
    """It could not land on any main as it is: the message says what is wrong, and the hint how to mend it."""


class NotAllowed(WindlassError):
    """The rules forbid the step."""


class BadInput(WindlassError):
    """A file or an argument does not say what it must."""


class Unavailable(WindlassError):
    """The outside world said no; trying again later may help."""


class TimedOut(Unavailable):
    """It took longer than it may."""


class Unanswered(Unavailable):
    """Whoever was asked will not answer, as things stand."""


KINDS: dict[str, type[WindlassError]] = {
    kind.__name__: kind for kind in (NotFound, Conflict, NotAllowed, BadInput, Unavailable, TimedOut)
}
"""Errors by name: how a surface carries one across a wire."""
