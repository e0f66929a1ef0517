"""Which providers are here: found on the PATH, asked for their version, logged in by what files and variables say."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from windlass.core.nouns.agent import Permissions
from windlass.core.runs.provider import Login, Presence, Provider, StartRequest

PATIENCE = 10.0
"""Seconds that a program may take to tell its version."""
_MOST = 4096
_VERSION = re.compile(r"\d+(\.\d+)+[\w.+-]*")


async def look(every: Callable[[], Iterable[Provider]], environment: Mapping[str, str]) -> list[Presence]:
    """All of them at once; no program is asked for more than its version, and nothing goes over the network."""
    return list(await asyncio.gather(*(_look(each, environment) for each in every())))


async def _look(provider: Provider, environment: Mapping[str, str]) -> Presence:
    own = {**environment, **provider.environment(_nowhere(provider))}
    path = _program(provider, own)
    version = await _version(provider, own) if path else ""
    login, evidence = _login(provider, own)
    return Presence(provider=provider, path=path, version=version, login=login, evidence=evidence)


def _program(provider: Provider, environment: Mapping[str, str]) -> str:
    """Where its program is, or the library that it takes."""
    if provider.module:
        found = find_spec(provider.module)
        return str(Path(found.origin).parent) if found and found.origin else ""
    return shutil.which(provider.program, path=environment.get("PATH")) or "" if provider.program else ""


def _nowhere(provider: Provider) -> StartRequest:
    """A run that will never be: its variables are those of any other."""
    options = dict.fromkeys(provider.options, "")
    files = dict.fromkeys(provider.files, "")
    return StartRequest(
        prompt_file="", number=1, session="", permissions=Permissions.EDIT, options=options, files=files
    )


async def _version(provider: Provider, environment: Mapping[str, str]) -> str:
    """What it says first that looks like a version; nothing if it says none in time."""
    if provider.distribution:
        return metadata.version(provider.distribution)
    if not provider.version:
        return ""
    try:
        process = await asyncio.create_subprocess_exec(
            *provider.version,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(PATIENCE):
            said = await _first(process)
    except TimeoutError:
        said = b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()
    found = _VERSION.search(said.decode("utf-8", "replace"))
    return found.group() if found else ""


async def _first(process: asyncio.subprocess.Process) -> bytes:
    """The beginning of its output, and then its end: one that ends by itself has done what it wants to do."""
    assert process.stdout is not None
    said = await process.stdout.read(_MOST)
    await process.wait()
    return said


def _login(provider: Provider, environment: Mapping[str, str]) -> tuple[Login, str]:
    if not provider.secrets and not provider.login:
        return Login.UNKNOWN, ""
    for name in provider.secrets:
        if environment.get(name):
            return Login.YES, f"${name}"
    for written in provider.login:
        path = _path(written, environment)
        if path is not None and path.is_file():
            return Login.YES, written if written.startswith("$") else f"~/{written}"
    return Login.NO if provider.login or provider.keys else Login.UNKNOWN, ""


def _path(written: str, environment: Mapping[str, str]) -> Path | None:
    """`$NAME/x` by its variable, `/x` as it is, and all else below the home."""
    if not written.startswith("$"):
        return Path(environment.get("HOME") or Path.home(), written)
    name, _, rest = written[1:].partition("/")
    return Path(environment[name], rest) if environment.get(name) else None
