"""The rules of the house, read from the source itself: floors, sizes, names, reasons. AGENTS.md explains them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from source_files import ALL, SOURCE, SRC, TESTS, TOP, Module, expect_none

pytestmark = pytest.mark.xdist_group("house")  # one worker reads all files once, not each of them all

FLOORS = (
    {"core"},
    {"engine", "system"},
    {"web", "mcp", "ui", "providers", "store", "git", "process", "workdir", "checks", "library", "fleet", "model"},
    {"daemon"},
    {"cli"},
)
"""From the ground up. A floor may use those below; rooms on one floor share no doors."""

PURE = set(
    "__future__ collections dataclasses difflib enum functools hashlib itertools json math msgspec re shlex string "
    "textwrap types typing zlib".split()
)
"""What core may import besides itself: nothing in it reads, writes, waits, or knows the time."""

LONGEST_FUNCTION, LONGEST_FILE, LONGEST_SCRIPT = 60, 400, 20
MOST_MODULES = 12
"""How many modules a folder may have."""
CATALOGUES = {"cli/commands", "web/routes"}
"""Folders with one module for each topic: as many as there are topics."""
SHARED_NAMES: dict[str, str] = {}
"""Class names that several packages use, each with the reason."""
VAGUE = re.compile(r"(Manager|Service|Handler|Helper|Utils?|Info|Data|Base)$")
CLIS = re.compile(r"\b(claude|codex|aider|cline|gemini|opencode|cursor.agent)\b", re.IGNORECASE)

USED_FROM_OUTSIDE = {
    "run": "the entry point in pyproject.toml",
    "format_commands": "click asks for it, to show the commands in its help",
    "main_loop": "uvicorn's, which we put our own in the place of",
}
"""Public names that no line of the source refers to, and who does."""

FOR_USERS = {SOURCE / "api.py"}
"""What is in this is there for other people's programs."""

PASSIVE = set(
    "abstractmethod asynccontextmanager cache cached_property classmethod contextmanager dataclass final lru_cache "
    "override property runtime_checkable setter singledispatch staticmethod total_ordering wraps".split()
)
"""Decorators that hand a function to nobody; any other one, such as `@main.command()`, does."""

OWN_BASES = {"Protocol", "Generic", "Enum", "StrEnum", "IntEnum", "Exception", "NamedTuple", "TypedDict"}
"""Bases that call no method by themselves. A foreign base, such as click's, may call any."""


def floor_of(room: str) -> int | None:
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), None)


class TestFloors:
    def test_every_room_has_a_floor(self) -> None:
        """A new package says first where it belongs."""
        rooms = {each.room for each in SRC} - {""}
        assert rooms <= set().union(*FLOORS)

    def test_imports_go_down(self) -> None:
        """No import leads up, or into another room on the same floor: not even a lazy one, nor one for types."""
        expect_none(bad for each in SRC if each.room for bad in upward(each))

    def test_core_is_pure(self) -> None:
        """Core imports nothing that reads, writes, waits, or knows the time."""
        core = [each for each in SRC if each.room == "core"]
        expect_none(
            f"{each.name}:{line} imports {name}"
            for each in core
            for name, line in each.imports()
            if name.split(".")[0] not in PURE | {"windlass"}
        )

    def test_core_does_nothing(self) -> None:
        """Core neither awaits, nor opens, nor prints."""
        core = [each for each in SRC if each.room == "core"]
        expect_none(f"{each.name}:{node.lineno}" for each in core for node in doings(each))

    def test_the_contract_is_the_same(self) -> None:
        """The import-linter contract knows every room that is built, on the same floor."""
        contract = (TOP / "pyproject.toml").read_text().partition("layers = [")[2].partition("]")[0]
        drawn = [set(re.findall(r"windlass\.(\w+)", line)) for line in contract.splitlines() if line.strip()]
        built = {each.room for each in SRC} - {""}
        assert [rooms & built for rooms in FLOORS] == [rooms & built for rooms in reversed(drawn)]


def upward(module: Module) -> list[str]:
    own = floor_of(module.room)
    found = []
    for name, line in module.imports():
        parts = name.split(".")
        if name.startswith("."):
            found.append(f"{module.name}:{line} imports relatively; write the full name")
        elif parts[0] == "windlass" and len(parts) > 1 and parts[1] != module.room:
            other = floor_of(parts[1])
            if other is not None and own is not None and other >= own:
                found.append(f"{module.name}:{line} imports {name}")
    return found


def doings(module: Module) -> Iterator[ast.expr]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Await() | ast.Call(func=ast.Name(id="open" | "print" | "input" | "exec" | "eval")):
                yield node


class TestSize:
    def test_functions_fit_on_a_screen(self) -> None:
        """No function that everything flows into."""
        expect_none(
            f"{each.name}:{node.lineno} {node.name} has {length} lines"
            for each in ALL
            for node in each.functions()
            if (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
        )

    def test_files_fit_in_a_head(self) -> None:
        """No file that has to be searched instead of read."""
        expect_none(
            f"{each.name} has {length} lines" for each in ALL if (length := len(each.text.splitlines())) > LONGEST_FILE
        )

    def test_folders_fit_on_a_screen(self) -> None:
        """No drawer of modules that one has to search: a folder that grows gets topics."""
        folders = Counter(module.path.parent for module in SRC if module.path.name != "__init__.py")
        expect_none(
            f"{folder.relative_to(SOURCE)} has {count} modules"
            for folder, count in folders.items()
            if count > MOST_MODULES and str(folder.relative_to(SOURCE)) not in CATALOGUES
        )

    def test_scripts_are_short(self) -> None:
        """What people, agents and CI run can be read in a moment."""
        scripts = [path for path in (TOP / "scripts").iterdir() if path.is_file() and not path.suffix]
        expect_none(
            script.name
            for script in (*scripts, TOP / "windlass")
            if len(script.read_text().splitlines()) > LONGEST_SCRIPT
        )


class TestNames:
    def test_classes_say_what_they_are(self) -> None:
        """Manager, Service, Handler and the like say nothing."""
        expect_none(
            f"{each.name}:{node.lineno} {node.name}"
            for each in SRC
            for node in ast.walk(each.tree)
            if isinstance(node, ast.ClassDef) and VAGUE.search(node.name)
        )

    def test_each_class_has_a_name_of_its_own(self) -> None:
        """One name, one class: whoever greps for it finds one definition."""
        places: dict[str, set[str]] = {}
        for module in SRC:
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, set()).add(module.name)
        expect_none(
            f"{name}: {', '.join(sorted(files))}"
            for name, files in places.items()
            if len(files) > 1 and name not in SHARED_NAMES
        )

    def test_loops_name_what_they_go_through(self) -> None:
        """`for run in runs`; `each` only in a comprehension of at most two lines."""
        expect_none(f"{module.name}:{line}" for module in SRC for line in nameless_loops(module))

    def test_each_coding_cli_is_known_in_one_place(self) -> None:
        """The name of a coding CLI stands in providers/ and in texts, nowhere else: adding one is one file."""
        elsewhere = [each for each in SRC if each.room != "providers"]
        expect_none(
            f"{each.name}:{number}"
            for each in elsewhere
            for number, line in enumerate(each.text.splitlines(), start=1)
            if CLIS.search(line)
        )


def nameless_loops(module: Module) -> Iterator[int]:
    """Lines of loops over `each` that are longer than a comprehension of two lines."""
    for node in ast.walk(module.tree):
        match node:
            case ast.For(target=ast.Name(id="each")) | ast.AsyncFor(target=ast.Name(id="each")):
                yield node.lineno
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                unnamed = any(
                    isinstance(part.target, ast.Name) and part.target.id == "each" for part in node.generators
                )
                if unnamed and (node.end_lineno or 0) - node.lineno > 1:
                    yield node.lineno


class TestWords:
    def test_every_module_says_what_it_is_for(self) -> None:
        """A module begins with a sentence."""
        expect_none(each.name for each in ALL if len((ast.get_docstring(each.tree) or "").split()) < 3)

    def test_every_test_states_its_behaviour(self) -> None:
        """A test begins with the behaviour that it shows."""
        expect_none(
            f"{test.name}:{node.lineno} {node.name}"
            for test in TESTS
            for node in test.functions()
            if node.name.startswith("test_") and not ast.get_docstring(node)
        )

    def test_exceptions_to_the_rules_have_a_reason(self) -> None:
        """`noqa`, `type: ignore` and a broad `except` say why, on the same line."""
        expect_none(f"{each.name}:{line}" for each in ALL for line in unexplained(each))


def unexplained(module: Module) -> list[int]:
    """Lines that set a rule aside without three words of reason."""
    broad = {
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and catches_all(node) and not isinstance(node.body[-1], ast.Raise)
    }
    marked = {line for line, words in module.comments.items() if re.search(r"#\s*(noqa|type:\s*ignore)", words)}
    if module.path.is_relative_to(SOURCE / "cli"):  # imports late everywhere, for one reason: start-up time
        marked -= {line for line, words in module.comments.items() if re.search(r"noqa: PLC0415$", words)}
    return sorted(line for line in broad | marked if len(reason(module.comments.get(line, "")).split()) < 3)


def catches_all(node: ast.ExceptHandler) -> bool:
    return node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})


def reason(comment: str) -> str:
    return re.sub(r"#\s*(noqa(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?|type:\s*ignore(\[[\w, -]*\])?)|[#:-]", " ", comment)


class TestUse:
    def test_nothing_public_is_unused(self) -> None:
        """What no line of the source refers to is not there: a test alone is no use."""
        uses = Counter(name for each in SRC for name in references(each))
        expect_none(
            f"{module.name}:{node.lineno} {node.name}"
            for module in SRC
            if module.path not in FOR_USERS
            for node in definitions(module)
            if not uses[node.name] and node.name not in USED_FROM_OUTSIDE
        )


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def our_classes() -> frozenset[str]:
    found = (node.name for each in SRC for node in ast.walk(each.tree) if isinstance(node, ast.ClassDef))
    return frozenset(found) | OWN_BASES


def definitions(module: Module) -> Iterator[Definition]:
    """Public functions, methods and classes that only the source itself can use."""
    ours = our_classes()
    called_by_others = {
        id(method)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and not all(last_word(base) in ours for base in node.bases)
        for method in node.body
    }
    for node in ast.walk(module.tree):
        if not isinstance(node, Definition) or node.name.startswith("_") or id(node) in called_by_others:
            continue
        if all(last_word(each) in PASSIVE for each in node.decorator_list):
            yield node


def last_word(node: ast.expr) -> str:
    """`command` of `@main.command(…)`; `Group` of `click.Group`; `Protocol` of `Protocol[T]`."""
    match node:
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return last_word(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def references(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.ImportFrom(names=names):
                yield from (each.name for each in names)
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]+(:\w+)?", text):
                yield from re.split(r"[.:]", text)  # a name for a lazy import
