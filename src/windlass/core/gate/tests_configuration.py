"""Files that configure tests: by their name, or by some of their tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec.toml

FOLDERS = (".github/", ".circleci/", ".forgejo/", ".gitea/", ".buildkite/", ".gitlab-ci.yml")
"""What other machines do with a repository. No check of ours can tell whether a change to it is good."""
_RUNNERS = (
    r"makefile|gnumakefile|\.?justfile|taskfile(\.dist)?\.ya?ml|rakefile|gruntfile\..*|gulpfile\..*|dodo\.py|noxfile\.py"
    r"|tox\.(ini|toml)|turbo\.json|nx\.json|\.bazelrc|.*\.(mk|just)"
)
_TESTERS = (
    r"conftest\.py|\.?pytest\.(ini|toml)|\.coveragerc|\.mocharc\..*|\.nycrc(\..*)?|phpunit\.xml(\.dist)?|\.rspec"
    r"|(jest|vitest|playwright|cypress|karma|ava)\.(config|conf|workspace|setup)\..*|vite\.config\..*|nextest\.toml"
)
_LANGUAGES = (
    r"(site|user)customize\.py|.*\.py[co]|.*\.pth|.*\.egg-link|\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.c?js|bunfig\.toml"
)
"""What a language runs, or lets choose what runs, before anything of a test. Compiled Python hides its source."""
_FILES = re.compile(f"{_RUNNERS}|{_TESTERS}|{_LANGUAGES}", re.IGNORECASE)
_PLACES = re.compile(
    r"(.*/)?(\.cargo/config(\.toml)?|\.mvn/.*|\.yarn/(releases|plugins)/.*|node_modules/.*|vendor/bin/.*"
    r"|\.?venv/(bin|lib|lib64|pyvenv\.cfg)(/.*)?|(.*/)?site-packages/.*"
    r"|[^/]+\.(dist|egg)-info/.*)"
)
"""Also where a set-up puts the programs that test."""
_OWN_SETTINGS = re.compile(
    r"\.([\w-]+?)(rc|-config)?(\.(ini|toml|cfg|jsonc?|ya?ml|xml|[cm]?[jt]s))?|([\w-]+?)(rc|\.ini|\.toml|\.cfg|\.config\..*)"
)
"""How programs call the file of their settings: `.eslintrc.json`, `mypy.ini`, `.flake8`, `ruff.toml` …"""
_SCRIPTS = ("scripts", "config", "packageManager", "jest", "mocha", "ava", "vitest", "nyc", "c8", "tap", "wireit")
_TOOLS = (
    *(("tool", name) for name in ("pytest", "tox", "nox", "coverage", "poe", "taskipy")),
    *(("tool", "hatch", "envs"), ("tool", "pdm", "scripts"), ("tool", "uv", "scripts"), ("tool", "pixi", "tasks")),
)
_CARGO = (("test",), ("package", "autotests"), ("package", "build"), ("lib", "test"), ("lib", "harness"))
_HEADERS = (re.compile(r"^\[([^\]\n]*)\]", re.MULTILINE), re.compile(r"^[ \t]*\[([^\]\n]*)\]", re.MULTILINE))
"""Some readers take a header that is indented for one, some for the line before going on."""
_SECTIONS = re.compile(r"(tool:)?pytest|tox|testenv|coverage|aliases|DEFAULT")
_HARMLESS = re.compile(
    r"[-!]?(diff|merge|filter|binary|whitespace|encoding|delta|conflict-marker-size|linguist-.*|gitlab-.*)(=.*)?|-text"
)
"""Attributes that do not change what is in a file when git writes it for a check: no filter is defined there."""
_IMPORTED = frozenset(
    "__future__ abc argparse ast asyncio atexit base64 bdb bisect builtins bz2 code codecs collections"
    " concurrent configparser contextlib contextvars copy copyreg csv ctypes dataclasses datetime decimal"
    " difflib dis doctest encodings enum errno faulthandler fnmatch functools gc genericpath getpass"
    " gettext glob gzip hashlib heapq html http importlib inspect io ipaddress itertools json keyword"
    " linecache locale logging lzma marshal math multiprocessing numbers opcode operator os pathlib pdb"
    " pickle pkgutil platform posixpath pprint profile queue random re reprlib runpy select selectors"
    " shlex shutil signal site socket sqlite3 ssl stat string struct subprocess sys sysconfig tempfile"
    " textwrap threading time timeit token tokenize tomllib traceback types typing unicodedata unittest"
    " _colorize attr calendar email exceptiongroup getopt optparse plistlib py quopri readline sre_compile zipp"
    " pytest_cov urllib uuid warnings weakref xml zipfile zipimport zlib _pytest coverage execnet hypothesis"
    " iniconfig packaging pluggy pygments pytest tomli xdist".split()
)
"""What Python and its test runners import before or while they test."""
_MODULE = re.compile(r"(\w+)(/__init__)?(\.[\w-]+)*\.(py|so|pyd)")


def configures_tests(file: str, programs: Collection[str] = ()) -> bool:
    """Whether all of a file is about tests, which these programs may be a part of."""
    if _FILES.fullmatch(_name(file)) or _PLACES.fullmatch(file):
        return True
    found = _OWN_SETTINGS.fullmatch(_name(file))
    return found is not None and (found[1] or found[5]) in programs


def hides_module(file: str) -> bool:
    """Whether a new file would be imported in the place of a module of Python's, or of its test runners."""
    found = _MODULE.fullmatch(file)
    return found is not None and found[1] in _IMPORTED


def has_tables(file: str) -> bool:
    """Whether some tables of a file may be about tests."""
    return _name(file) in _READERS


def tables_for_tests(file: str, text: str | None, programs: Collection[str] = ()) -> object:
    """What a file says about tests; nothing if there is no file, and all of it if it can't be read."""
    try:
        return (text is not None and _READERS[_name(file)](text, programs)) or {}
    except (ValueError, RecursionError):
        return text


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def _package(text: str, programs: Collection[str]) -> object:
    return _chosen(json.loads(text), [*((name,) for name in _SCRIPTS), *((f"{name}Config",) for name in programs)])


def _pyproject(text: str, programs: Collection[str]) -> object:
    return _chosen(msgspec.toml.decode(text), [*_TOOLS, *(("tool", name) for name in programs)])


def _setup(text: str, programs: Collection[str]) -> object:
    pairs = [pair for header in _HEADERS for pair in _pairs(header.split(text))]
    return [pair for pair in pairs if _SECTIONS.match(pair[0]) or re.split("[-:]", pair[0])[0] in programs]


def _pairs(parts: list[str]) -> Iterable[tuple[str, str]]:
    return zip(parts[1::2], parts[2::2], strict=True)


def _attributes(text: str, _: Collection[str]) -> object:
    lines = [line.split() for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [line for line in lines if not all(map(_HARMLESS.fullmatch, line[1:]))]


def _chosen(document: object, keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], object]:
    return {key: found for key in keys if (found := _inside(document, key)) is not None}


def _inside(document: object, key: tuple[str, ...]) -> object:
    for name in key:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def _some(decode: Callable[[str], object], *keys: tuple[str, ...]) -> Callable[[str, Collection[str]], object]:
    return lambda text, _: _chosen(decode(text), keys)


_READERS: dict[str, Callable[[str, Collection[str]], object]] = {
    ".gitattributes": _attributes,
    "Cargo.toml": _some(msgspec.toml.decode, *_CARGO),
    "composer.json": _some(json.loads, ("scripts",)),
    "deno.json": _some(json.loads, ("tasks",), ("test",)),
    "deno.jsonc": _some(json.loads, ("tasks",), ("test",)),
    "mise.toml": _some(msgspec.toml.decode, ("tasks",), ("env",), ("hooks",)),
    "package.json": _package,
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup,
}
