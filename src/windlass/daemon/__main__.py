"""`python -m windlass.daemon`: one daemon for one home."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from windlass.core import codec
from windlass.core.display import hanging, harmless_lines
from windlass.core.errors import Conflict, Unavailable, WindlassError
from windlass.core.runs.redact import Redactor, is_secret_name
from windlass.daemon.boot import Program, build
from windlass.daemon.idle import leave_when_idle
from windlass.daemon.lifecycle import STORE, HomeLock, hang_up, listen, prepare_home
from windlass.daemon.loops import keep_all
from windlass.daemon.serving.port import OFF, close_port, open_port
from windlass.daemon.serving.server import DaemonServer
from windlass.daemon.serving.shares import Shares, most_callers
from windlass.daemon.settings import home_folder
from windlass.daemon.store_watch import look_after_store
from windlass.providers import load
from windlass.store.copies import restore
from windlass.web.app import build as build_app
from windlass.web.app import build_port

log = logging.getLogger("windlass")

LOG_BYTES = 5_000_000
ALREADY_RUNNING = 4
FAILED = 6
FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main() -> int:
    """Serve until told to leave. Exit codes are those of the CLI."""
    foreground = "--foreground" in sys.argv[1:]
    home = home_folder()
    try:
        prepare_home(home)
        if "--restore" in sys.argv[1:]:
            _restore(home)
            return 0
        _log_to(home / "daemon.log", foreground=foreground)
        with HomeLock(home):
            asyncio.run(_serve(home, foreground=foreground))
    except Conflict as error:
        return _say(error, ALREADY_RUNNING)
    except WindlassError as error:
        return _say(error, FAILED)
    return 0


def _restore(home: Path) -> None:
    """Put the store's copy back, while no daemon runs, and print as JSON what that was."""
    with HomeLock(home):
        restored = restore(home / STORE, home / "runs")
    sys.stdout.write(codec.encode(restored).decode() + "\n")


def _say(error: WindlassError, code: int) -> int:
    sys.stderr.write(f"windlass: {error}\n" + (f"  {error.hint}\n" if error.hint else ""))
    return code


def _log_to(file: Path, *, foreground: bool) -> None:
    file.touch(mode=0o600)
    handlers: list[logging.Handler] = [logging.handlers.RotatingFileHandler(file, maxBytes=LOG_BYTES, backupCount=2)]
    if foreground:
        handlers.append(logging.StreamHandler())
    for handler in handlers:
        handler.setFormatter(RedactedLog(os.environ, (name for provider in load().all() for name in provider.secrets)))
    logging.basicConfig(level=logging.INFO, handlers=handlers)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


class RedactedLog(logging.Formatter):
    """Writes whole records, tracebacks too, with secrets redacted; whatever is in one, it is one record."""

    def __init__(self, environment: Mapping[str, str], secrets: Iterable[str]) -> None:
        super().__init__(FORM)
        names = {*secrets, *(name for name in environment if is_secret_name(name))}
        self._redactor = Redactor(environment[name] for name in names if name in environment)

    def format(self, record: logging.LogRecord) -> str:
        return hanging(harmless_lines(self._redactor.text(super().format(record))))


async def _serve(home: Path, *, foreground: bool) -> None:
    leaving = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leaving.set)
    async with build(home, leaving.set) as building:
        door = listen(home)
        log.info("listening, pid %s", os.getpid())
        app = build_app(building.engine, building.context, building.authenticator, building.tools)
        shares = Shares(most_callers())
        servers = [DaemonServer(app, door, building.identify, shares), *_on_port(home, building, shares)]
        moving = [asyncio.create_task(keep_all(building.engine))]
        moving.append(asyncio.create_task(look_after_store(building, home, leaving)))
        if not foreground:  # a daemon that a service manager keeps stays
            moving.append(asyncio.create_task(leave_when_idle(building, home, leaving)))
        try:
            await asyncio.gather(*(server.run_until(leaving, building.fall_silent) for server in servers))
        finally:
            hang_up(home)
            close_port(home)
            for task in moving:
                task.cancel()
            await asyncio.gather(*moving, return_exceptions=True)
    log.info("left; agents go on")


def _on_port(home: Path, building: Program, shares: Shares) -> list[DaemonServer]:
    """The server on the port, unless it is off; a port that can't be had is reported, and the rest is served."""
    wanted = building.settings.at("").daemon.port
    if wanted == OFF:
        return []
    app = build_port(building.port_authenticator, building.tools)
    try:
        return [DaemonServer(app, open_port(home, wanted), building.identify, shares)]
    except Unavailable as error:
        building.engine.troubles.report("port", error)
        return []


if __name__ == "__main__":
    sys.exit(main())
