"""The rules of the house, read from the source itself: floors, sizes, names, reasons. AGENTS.md explains them."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
SOURCE = TOP / "src" / "windlass"

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
    "textwrap types typing".split()
)
"""What core may import besides itself: nothing in it reads, writes, waits, or knows the time."""

LONGEST_FUNCTION, LONGEST_FILE, LONGEST_SCRIPT = 60, 500, 20
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

FOREIGN_PLACE = re.compile(r"(?<![\w.$}])/(?:home|root|work|opt|Users|mnt)/\w+")
HOST = re.compile(r"\bhttps?://([^\s/:\"'`)>\]]+)")
KNOWN_HOSTS = {"www.w3.org", "localhost", "127.0.0.1", "example.com", "windlass"}


@dataclass(frozen=True)
class Module:
    """One Python file, read once."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def comments(self) -> dict[int, str]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}

    @property
    def name(self) -> str:
        return str(self.path.relative_to(TOP))

    @property
    def room(self) -> str:
        """The package below `windlass`; nothing for the few files beside them."""
        return self.path.relative_to(SOURCE).parts[0] if self.path.parent != SOURCE else ""

    def imports(self) -> Iterator[tuple[str, int]]:
        """Every module this one imports, also lazily, and the line."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((name.name, node.lineno) for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module == "windlass":
                yield from ((f"windlass.{name.name}", node.lineno) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield "." * node.level + (node.module or ""), node.lineno

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def modules(*folders: Path) -> list[Module]:
    return [Module(path) for folder in folders for path in sorted(folder.rglob("*.py"))]


SRC = modules(SOURCE)
TESTS = modules(TOP / "tests")
ALL = SRC + TESTS + modules(TOP / "scripts")


def expect_none(found: Iterable[str]) -> None:
    """Every place where a rule is broken, one a line."""
    places = list(found)
    assert not places, "\n" + "\n".join(places)


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

    def test_each_coding_cli_is_known_in_one_place(self) -> None:
        """The name of a coding CLI stands in providers/ and in texts, nowhere else: adding one is one file."""
        elsewhere = [each for each in SRC if each.room != "providers"]
        expect_none(
            f"{each.name}:{number}"
            for each in elsewhere
            for number, line in enumerate(each.text.splitlines(), start=1)
            if CLIS.search(line)
        )


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


class TestTree:
    def test_no_place_or_host_of_one_machine(self) -> None:
        """Nothing in the tree leads to a folder or host that only one person has."""
        expect_none(f"{path}: {found}" for path, text in tracked() for found in foreign(text))

    def test_every_link_between_texts_leads_somewhere(self) -> None:
        """A relative link in a Markdown file names a file that is there."""
        expect_none(
            f"{path}: {target}"
            for path, text in tracked()
            if path.suffix == ".md"
            for target in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]*)?\)", text)
            if not (TOP / path.parent / target).exists()
        )

    def test_changelog_fragments_have_their_form(self) -> None:
        """`changelog.d/<issue>.<added|changed|fixed|removed>.md`, so that branches never meet in one file."""
        form = re.compile(r"\d+(-\w+)?\.(added|changed|fixed|removed)\.md|README\.md")
        expect_none(path.name for path in (TOP / "changelog.d").iterdir() if not form.fullmatch(path.name))

    def test_the_locks_know_every_dependency(self) -> None:
        """What pyproject.toml asks for is locked, with a version and its hashes."""
        asked = tomllib.loads((TOP / "pyproject.toml").read_text())
        groups = asked["dependency-groups"]
        runs = [*asked["project"]["dependencies"], *groups["build"]]
        develops = [*runs, *(group for group in groups["dev"] if isinstance(group, str))]
        expect_none([*unlocked("requirements.lock", runs), *unlocked("requirements-dev.lock", develops)])

    def test_allowed_skips_have_a_reason(self) -> None:
        """A test that may be skipped is listed with the reason why."""
        lines = (TOP / "tests" / "allowed_skips.txt").read_text().splitlines()
        expect_none(line for line in lines if line.strip() and len(line.partition("#")[2].split()) < 3)


@pytest.mark.xdist_group("house")
def test_a_group_of_tests_stays_together(request: pytest.FixtureRequest) -> None:
    """What one worker builds once would be built by each of them, and nobody would see why all takes so long."""
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.node.nodeid.endswith("@house")


def unlocked(lock: str, asked: list[str]) -> list[str]:
    locked = re.findall(r"^([\w.-]+)==\S+.*\\\n +--hash=", (TOP / lock).read_text(), re.MULTILINE)
    names = [re.split(r"[^\w.-]", each)[0].lower() for each in asked]
    return [f"{name} is not in {lock}; run scripts/lock" for name in names if name not in locked]


def tracked() -> list[tuple[Path, str]]:
    """The text files that git knows, or would; without git, the tree as it is."""
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.fail(f"git does not list the files: {listed.stderr}")
    paths = [Path(part) for part in listed.stdout.split("\0") if part]
    return [(path, (TOP / path).read_text(errors="replace")) for path in paths if (TOP / path).is_file()]


def foreign(text: str) -> list[str]:
    hosts = [
        host
        for host in HOST.findall(text)
        if host not in KNOWN_HOSTS and not host.endswith((".example", ".example.com"))
    ]
    return FOREIGN_PLACE.findall(text) + hosts
