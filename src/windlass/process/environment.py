"""The environment that runs start with: an allow-list, so that a credential is not there unless someone named it."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Collection, Mapping
from pathlib import Path

from windlass.core.errors import Unavailable

_PERSON = frozenset("PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM COLORTERM NO_COLOR TZ TZDIR TMPDIR".split())
_PROXY = frozenset("http_proxy https_proxy ftp_proxy all_proxy no_proxy".split())
TRUSTED = frozenset(
    "SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NIX_SSL_CERT_FILE "
    "GIT_SSL_CAINFO GIT_SSL_CAPATH".split()
)
"""Variables with the certificates that TLS trusts."""
# how git reaches other machines is the user's; which repository it works in is not
_GIT = frozenset(
    "GIT_ASKPASS GIT_PROXY_COMMAND GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_SSL_CERT GIT_SSL_KEY GIT_SSL_NO_VERIFY "
    "GIT_TERMINAL_PROMPT".split()
)
# without these, what the PATH finds does not find the rest of itself
_TOOLS = frozenset(
    "ASDF_DATA_DIR ASDF_DIR BUN_INSTALL CARGO_HOME GOPATH GOROOT JAVA_HOME LD_LIBRARY_PATH MISE_DATA_DIR NIX_PROFILES "
    "NVM_BIN NVM_DIR PNPM_HOME PYENV_ROOT RBENV_ROOT RUSTUP_HOME SDKMAN_DIR VOLTA_HOME".split()
)
_ALLOWED = _PERSON | TRUSTED | _GIT | _TOOLS
FOLDER = "commands"
"""The folder of our home with our own command in it. Not `bin`: beside one of those, a sandbox shows more of a tool."""
_NAME = "windlass"


def granted(environment: Mapping[str, str], names: Collection[str] = ()) -> dict[str, str]:
    """The variables that a run gets: those that everyone needs, and those that are named."""
    return {
        name: value
        for name, value in environment.items()
        if name in names or name in _ALLOWED or name.lower() in _PROXY or name.startswith(("LC_", "XDG_"))
    }


def with_us(path: str, folder: Path) -> str:
    """A PATH that finds `windlass`, which agents are told to use.

    The PATH stays as it is if it does, and gets a folder at its end that has nothing but that if it does not.
    """
    program = Path(sys.executable).with_name(_NAME)
    if shutil.which(_NAME, path=path) or not os.access(program, os.X_OK):
        return path
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _link(folder / _NAME, program)
    except OSError as error:
        raise Unavailable(f"The folder {folder} could not be made: {error.strerror}.") from error
    return f"{path}:{folder}"


def _link(place: Path, program: Path) -> None:
    """Put in place in one step, as others may start at the same time."""
    if place.is_symlink() and place.readlink() == program:
        return
    draft = place.with_name(f".{_NAME}-{threading.get_ident()}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(program)
    draft.replace(place)
