"""Reads and writes settings files. No other module reads them, or the environment."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.project import Project
from windlass.core.settings.schema import Settings, build, check_key, keys, parse_value, shown
from windlass.system.files import NotPlain, read_file, write_whole

ENVIRONMENT = {"WINDLASS_PROVIDER": "work.provider", "WINDLASS_SANDBOX": "sandbox.mode"}
"""Variables that stand for a setting."""
STRICTER = {"sandbox.mode": "on", "sandbox.checks": "on", "sandbox.network": False, "checks.network": False}
"""The only values of these settings that a project's file may have: it may protect the user more, never less."""
FOR_ALL = ("daemon.", "sandbox.", "work.environment", "checks.network")
"""Beginnings of the settings that belong in the home's file."""

_HOME_ONLY = {
    "daemon": "is for all projects",
    "providers": "names programs that would run on your machine",
    "models": "says where your keys are sent",
}
"""Tables that a project's file must not have, and why."""

LARGEST = 200_000
"""Bytes of a settings file."""
MOST_DOTS = 500
"""Dots in one of its lines: the time to read a key grows with the square of them."""

IGNORED = """\
# What Windlass writes here while it works.
/input/
/output/
/chat.md
/context/
/process-status.json
/structure.json
/.*.*.*
"""
"""The last line: drafts, which replace another file a moment later."""

Layer = tuple[str, Mapping[str, Any]]
Stamp = tuple[int, int, int]


def home_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where everything that Windlass remembers is kept."""
    chosen = environment.get("WINDLASS_HOME")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".windlass"


def project_file(top: str) -> Path:
    return Path(top) / ".windlass" / "config.toml"


class SettingsFiles:
    """Built-in < home < project < environment, read anew whenever a file has changed."""

    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str] = os.environ,
        accept: Callable[[Settings], None] = lambda _: None,
    ) -> None:
        self.home_file = home / "config.toml"
        self.accept = accept
        """Raises BadInput for settings that another module can judge."""
        self.environment = _from_environment(environment)
        self._read: dict[Path, tuple[Stamp, dict[str, Any] | BadInput]] = {}
        self._built: dict[str, tuple[tuple[Stamp, ...], Settings]] = {}

    def at(self, path: str, /) -> Settings:
        try:
            return self._whole(path)
        except (BadInput, Unavailable):
            if path in self._built:
                return self._built[path][1]
            if path:
                raise
            return Settings()

    def check(self, path: str, /) -> None:
        self._whole(path)

    def _whole(self, path: str) -> Settings:
        stamps = tuple(_stamp(file) for file in self.files(path))
        known = self._built.get(path)
        if known is None or known[0] != stamps:
            settings = build(Settings, *self._layers(path))
            try:
                self.accept(settings)
            except BadInput as error:
                raise BadInput(f"{self.home_file}: {error}", hint=error.hint) from error
            known = self._built[path] = (stamps, settings)
        return known[1]

    def files(self, path: str) -> list[Path]:
        """The files that count, the weakest first."""
        return [self.home_file, *([project_file(path)] if path else [])]

    def set(self, file: Path, key: str, text: str) -> Any:
        """Write one setting into a file; everything else in it stays as it is."""
        value = parse_value(key, text)
        after = with_value(_read_text(file), key, value)
        build(Settings, (str(file), _parse(file, after)))
        _write(file, after)
        return value

    def _layers(self, path: str) -> list[Layer]:
        layers: list[Layer] = [(str(file), self._values(file)) for file in self.files(path)]
        if path:
            self._refuse_what_is_for_all(*layers[-1])
        return [*layers, ("the environment", self.environment)]

    def _refuse_what_is_for_all(self, source: str, values: Mapping[str, Any]) -> None:
        """Refuse settings that a project's file may not have: it comes with the repository, and agents change it."""
        for table, why in _HOME_ONLY.items():
            if table in values:
                raise BadInput(f"{source}: [{table}] {why}, so it belongs in {self.home_file}.", hint="Move it there.")
        allowed = " and ".join(f"{key} = {_toml(value)}" for key, value in STRICTER.items())
        tables = {table: inner for table, inner in values.items() if isinstance(inner, Mapping)}
        for key, value in ((f"{table}.{name}", tables[table][name]) for table in tables for name in tables[table]):
            if key.startswith(FOR_ALL) and (key not in STRICTER or value != STRICTER[key]):
                raise BadInput(
                    f"{source}: {key} = {shown(value)} would let agents do more, so it belongs in {self.home_file}.",
                    hint=f"Move it there; a project's file may only say {allowed}.",
                )

    def _values(self, file: Path) -> dict[str, Any]:
        stamp = _stamp(file)
        known = self._read.get(file)
        if known is None or known[0] != stamp:
            known = self._read[file] = (stamp, _tried(file))
        if isinstance(known[1], BadInput):
            raise BadInput(str(known[1]), hint=known[1].hint)
        return known[1]


class SettingsFileEditor:
    """The settings files of the home and of projects."""

    def __init__(self, files: SettingsFiles, guess: Callable[[Path], Mapping[str, str]]) -> None:
        self.files = files
        self.guess = guess

    def shown(self, path: str, /) -> tuple[Mapping[str, Any], Sequence[str]]:
        self.files.check(path)
        settings = self.files.at(path)
        return {key: attrgetter(key)(settings) for key in keys()}, [str(file) for file in self.files.files(path)]

    def change(self, path: str, key: str, text: str, /) -> tuple[Any, str]:
        for_all = not path or key.startswith(FOR_ALL)
        file = self.files.home_file if for_all else project_file(path)
        return self.files.set(file, key, text), str(file)

    def write_project(self, project: Project, /, *, name: str, main: str, command: str, setup: str) -> str:
        file = project_file(project.path)
        values = {
            "project.name": name,
            "project.uuid": project.id,
            "project.main": main,
            "checks.command": command,
            "checks.setup": setup,
        }
        for key, text in values.items():
            if text:
                self.files.set(file, key, text)
        ignored = file.with_name(".gitignore")
        try:
            if not ignored.exists():
                ignored.write_text(IGNORED, "utf-8")
        except OSError as error:
            raise Unavailable(f"{ignored} cannot be written: {error.strerror}.") from error
        return str(file)

    def guess_checks(self, path: str, /) -> Mapping[str, str]:
        return self.guess(Path(path))


def _stamp(file: Path) -> Stamp:
    """Facts that change when the file does."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, key in ENVIRONMENT.items():
        if text := environment.get(variable):
            table, _, name = key.partition(".")
            values.setdefault(table, {})[name] = parse_value(key, text)
    return values


def _read_text(file: Path) -> str:
    """The text of a settings file, or "". A repository may have a pipe or a device here: neither is read."""
    try:
        content = read_file(None, os.path.realpath(file), LARGEST + 1)
    except FileNotFoundError:
        return ""
    except NotPlain as error:
        raise BadInput(f"{file} is not a regular file.", hint="Remove it, or put a settings file there.") from error
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}.") from error
    if len(content) > LARGEST:
        raise BadInput(f"{file} has more than {LARGEST} bytes.", hint="Settings are short; put one there.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8 text.") from error


def _tried(file: Path) -> dict[str, Any] | BadInput:
    """The values of a settings file, or what is wrong with it: a broken file is parsed once, too."""
    try:
        return _parse(file, _read_text(file))
    except BadInput as error:
        return error


def _parse(file: Path, text: str) -> dict[str, Any]:
    """The values of a settings file. Whatever its text does to the parser is that file's fault, and named so."""
    dotted = next((number for number, line in enumerate(text.splitlines(), 1) if line.count(".") > MOST_DOTS), 0)
    if dotted:
        raise BadInput(f"{file}: line {dotted} has more than {MOST_DOTS} dots.", hint="Settings are short; cut it.")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise BadInput(f"{file} is nested too deeply.", hint="Settings are tables of plain values.") from error
    except Exception as error:  # the parser lets Python's own errors through, such as one about a number's length
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadInput(f"{file}: {words}.", hint="Correct that; `windlass config path` names the files.") from error


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text.encode(), mode=0o666)
    except OSError as error:
        raise Unavailable(f"{file} cannot be written: {error.strerror}.") from error


_TABLE = re.compile(r"\s*\[([A-Za-z0-9_.-]+)\]\s*(?:#.*)?")


def with_value(text: str, key: str, value: Any) -> str:
    """A settings file's text with one key set; comments and order stay."""
    check_key(key)
    table, _, name = key.rpartition(".")
    line = f"{name} = {_toml(value)}"
    lines = text.splitlines()
    start = next((at for at, each in enumerate(lines) if (found := _TABLE.fullmatch(each)) and found[1] == table), None)
    if start is None:
        return "\n".join([*lines, *([""] if lines else []), f"[{table}]", line]) + "\n"
    end = next((at for at in range(start + 1, len(lines)) if _TABLE.fullmatch(lines[at])), len(lines))
    for at in range(start + 1, end):
        if re.match(rf"\s*{re.escape(name)}\s*=", lines[at]):
            return "\n".join([*lines[:at], line, *lines[at + 1 :]]) + "\n"
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return "\n".join([*lines[:end], line, *lines[end:]]) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
