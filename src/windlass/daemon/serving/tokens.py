"""Tokens of callers on the port: the person's is in a file, a run's is made from it and kept nowhere."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

from windlass.core.errors import NotAllowed, Unavailable

FILE = "token"
_FORM = re.compile(r"[A-Za-z0-9_-]{43,128}")
"""The form of `secrets.token_urlsafe(32)`; anything else in the file is replaced."""


class Tokens:
    """Makes tokens and knows them again, also after a restart: what they are made from is in the home."""

    def __init__(self, home: Path) -> None:
        self._secret = _kept(home / FILE)

    def of(self, run: str) -> str:
        """The token of a run; of nobody's, the person's own."""
        return f"{run}.{self._seal(run)}" if run else self._secret

    def owner(self, token: str) -> str:
        """The run that a token belongs to; nothing if it is the person's own. Refuses any other."""
        run, dot, seal = token.partition(".")
        if not dot and _same(token, self._secret):
            return ""
        if run and _same(seal, self._seal(run)):
            return run
        raise NotAllowed(
            "That is no token of this daemon's.",
            hint="A run has its own in $WINDLASS_TOKEN; a person's is in the file `token` of the home.",
        )

    def _seal(self, run: str) -> str:
        return hmac.new(self._secret.encode(), f"run {run}".encode(), hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    """Whether two texts are the same; how long that takes does not tell where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())


def _kept(file: Path) -> str:
    """Read the person's token. A damaged file gets a new one, and every earlier token is void."""
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(handle, 0o600)
            found = os.pread(handle, 200, 0).decode("ascii", "replace").strip()
            if _FORM.fullmatch(found):
                return found
            made = secrets.token_urlsafe(32)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{made}\n".encode(), 0)
            return made
        finally:
            os.close(handle)
    except OSError as error:
        raise Unavailable(f"{file} cannot be used: {error.strerror}.") from error
