"""Which providers are installed, in which version, and whether the user is logged in."""

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
    """Look for all providers at once. A program is only asked for its version; nothing goes over the network."""
    return list(await asyncio.gather(*(_look(provider, environment) for provider in every())))


async def _look(provider: Provider, environment: Mapping[str, str]) -> Presence:
    options, files = dict.fromkeys(provider.options, ""), dict.fromkeys(provider.files, "")
    start = StartRequest(
        prompt_file="", number=1, session="", permissions=Permissions.EDIT, options=options, files=files
    )
    own = {**environment, **provider.environment(start)}
    path = _program(provider, own)
    version = await _version(provider, own) if path else ""
    login, evidence = _login(provider, own)
    return Presence(provider=provider, path=path, version=version, login=login, evidence=evidence)


def _program(provider: Provider, environment: Mapping[str, str]) -> str:
    """The path of its program, or of the library that it needs."""
    if provider.module:
        found = find_spec(provider.module)
        return str(Path(found.origin).parent) if found and found.origin else ""
    return shutil.which(provider.program, path=environment.get("PATH")) or "" if provider.program else ""


async def _version(provider: Provider, environment: Mapping[str, str]) -> str:
    """The first version number in its output; nothing if it prints none in time."""
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
            said = await process.stdout.read(_MOST) if process.stdout else b""
            await process.wait()  # a program that may end by itself has done what it wants to do
    except TimeoutError:
        said = b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()
    found = _VERSION.search(said.decode("utf-8", "replace"))
    return found.group() if found else ""


def _login(provider: Provider, environment: Mapping[str, str]) -> tuple[Login, str]:
    if not provider.secrets and not provider.login:
        return Login.UNKNOWN, ""
    for name in provider.secrets:
        if environment.get(name):
            return Login.YES, f"${name}"
    for file in provider.login:
        path = _path(file, environment)
        if path is not None and path.is_file():
            return Login.YES, file if file.startswith("$") else f"~/{file}"
    return Login.NO if provider.login or provider.keys else Login.UNKNOWN, ""


def _path(file: str, environment: Mapping[str, str]) -> Path | None:
    """`$NAME/x` by its variable, `/x` as it is, and any other path below the home."""
    if not file.startswith("$"):
        return Path(environment.get("HOME") or Path.home(), file)
    name, _, rest = file[1:].partition("/")
    return Path(environment[name], rest) if environment.get(name) else None
