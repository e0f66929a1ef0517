"""The environment that our processes start with."""

from __future__ import annotations

import sys
from collections.abc import Mapping

# how git reaches other machines is the user's; which repository it works in is not
_GIT_KEPT = frozenset(
    "GIT_ASKPASS GIT_PROXY_COMMAND GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_SSL_CAINFO GIT_SSL_CAPATH "
    "GIT_SSL_CERT GIT_SSL_KEY GIT_SSL_NO_VERIFY GIT_TERMINAL_PROMPT".split()
)
# a `windlass` typed inside a run must find this home
_OURS_KEPT = frozenset(["WINDLASS_HOME"])
_PLACE = frozenset("PWD OLDPWD _ SHLVL".split())
_SERVICE = frozenset(
    "NOTIFY_SOCKET LISTEN_FDS LISTEN_PID LISTEN_FDNAMES WATCHDOG_PID WATCHDOG_USEC INVOCATION_ID JOURNAL_STREAM".split()
)
_ACTIVATION = frozenset("VIRTUAL_ENV VIRTUAL_ENV_PROMPT".split())


def cleaned(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy without what belongs to us, to our caller's repository or to our service manager."""
    dropped = _PLACE | _SERVICE | (_ACTIVATION if environment.get("VIRTUAL_ENV") == sys.prefix else frozenset())
    return {name: value for name, value in environment.items() if name not in dropped and _is_theirs(name)}


def _is_theirs(name: str) -> bool:
    if name.startswith("GIT_"):
        return name in _GIT_KEPT
    if name.startswith("WINDLASS_"):
        return name in _OURS_KEPT
    return not name.startswith(("PYTHON", "__PYVENV"))
