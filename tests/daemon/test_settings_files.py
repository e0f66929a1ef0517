"""Settings files: layers, near misses, and edits that keep a person's comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from windlass.checks.guess import guess
from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Confinement
from windlass.core.nouns.project import Project
from windlass.core.settings.schema import Settings
from windlass.daemon.settings import SettingsFileEditor, SettingsFiles, project_file, with_value


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_zero_settings_work(tmp_path: Path) -> None:
    """With no file at all there are defaults for everything."""
    settings = SettingsFiles(tmp_path, {}).at(str(tmp_path))

    assert settings.limits.runs > 0
    assert settings.checks.command == ""


def test_the_project_is_stronger_than_the_home_and_the_environment_than_both(tmp_path: Path) -> None:
    """Each layer overrides single keys of the one below."""
    top = tmp_path / "repo"
    write(tmp_path / "config.toml", '[limits]\nruns = 3\nretries = 5\n[work]\nprovider = "home"\n')
    write(project_file(str(top)), '[limits]\nruns = 4\n[work]\nprovider = "project"\n')

    settings = SettingsFiles(tmp_path, {"WINDLASS_PROVIDER": "scripted"}).at(str(top))

    assert (settings.limits.runs, settings.limits.retries, settings.work.provider) == (4, 5, "scripted")


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    """Nobody has to restart the daemon after an edit."""
    files = SettingsFiles(tmp_path, {})
    write(tmp_path / "config.toml", "[limits]\nruns = 3\n")
    assert files.at("").limits.runs == 3
    write(tmp_path / "config.toml", "[limits]\nruns = 17\n")

    assert files.at("").limits.runs == 17


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("[limits]\nrnus = 1\n", "there is no setting limits.rnus", "limits.runs"),
        ("[limits]\nruns = 'many'\n", "limits.runs must be a whole number", ""),
        ("[limits]\nruns = 0\n", "limits.runs must be at least 1", ""),
        ("[limits]\nretries = -1\n", "must not be negative", ""),
        ("limits = 3\n", "limits is a table", ""),
        ("[limits\n", "line 1", "windlass config path"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, words: str, hint: str) -> None:
    """The error has the file, the key or line, and the near miss."""
    file = write(tmp_path / "config.toml", text)

    with pytest.raises(BadInput) as caught:
        SettingsFiles(tmp_path, {}).check("")

    assert str(file) in str(caught.value)
    assert words in str(caught.value)
    assert hint in caught.value.hint


def test_setting_a_key_keeps_comments_and_order() -> None:
    """Only the one line changes; a new key goes into its table, a new table to the end."""
    text = '# mine\n[limits]\n# how many\nruns = 3\n\n[checks]\ncommand = "old"  # slow\n'

    assert with_value(text, "limits.runs", 9) == text.replace("runs = 3", "runs = 9")
    assert with_value(text, "limits.retries", 2) == text.replace("runs = 3\n", "runs = 3\nretries = 2\n")
    assert with_value(text, "work.provider", "command").endswith('[work]\nprovider = "command"\n')


@pytest.mark.parametrize("value", ['say "hi"', "back\\slash", "tab\there", "ünïcode ✓", "bell \x07", "a\nb"])
def test_any_text_survives_being_written_and_read(tmp_path: Path, value: str) -> None:
    """Quotes, escapes and control characters come back as they were."""
    files = SettingsFiles(tmp_path, {})
    files.set(tmp_path / "config.toml", "checks.command", value)

    assert files.at("").checks.command == value


def test_a_bad_value_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """A refused edit writes nothing."""
    file = write(tmp_path / "config.toml", "[limits]\nruns = 3\n")

    with pytest.raises(BadInput, match="whole number"):
        SettingsFiles(tmp_path, {}).set(file, "limits.runs", "many")
    with pytest.raises(BadInput, match=r"limits\.rums"):
        SettingsFiles(tmp_path, {}).set(file, "limits.rums", "3")

    assert file.read_text() == "[limits]\nruns = 3\n"


def test_a_project_file_is_made_once_and_then_only_added_to(tmp_path: Path) -> None:
    """Running init again keeps what a person wrote."""
    desk = SettingsFileEditor(SettingsFiles(tmp_path / "home", {}), guess)
    project = Project(id="uuid-1", name="shop", path=str(tmp_path), main="main")
    file = Path(desk.write_project(project, name="shop", main="", command="make test", setup=""))
    file.write_text(file.read_text() + "# a note\n")

    desk.write_project(project, name="shop", main="", command="", setup="make deps")

    text = file.read_text()
    assert "# a note" in text
    assert 'command = "make test"' in text
    assert 'setup = "make deps"' in text
    assert "/output/" in file.with_name(".gitignore").read_text()


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"Makefile": "all:\n\ntest:\n\ttrue\n"}, "make test"),
        ({"package.json": '{"scripts": {"test": "vitest"}}', "package-lock.json": "{}"}, "npm test"),
        ({"package.json": "not json"}, ""),
        ({"Cargo.toml": ""}, "cargo test"),
        ({"go.mod": ""}, "go test ./..."),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "python3 -m pytest -q"),
        ({"tests/test_a.py": ""}, "python3 -m unittest discover -s tests"),
        ({"tests/test_a.py": "", "tests/__init__.py": ""}, "python3 -m unittest discover -s tests -t ."),
        ({"scripts/test": ""}, "scripts/test"),
        ({"README.md": ""}, ""),
    ],
)
def test_checks_are_guessed_from_the_files_at_the_top(tmp_path: Path, files: dict[str, str], command: str) -> None:
    """What most projects of a kind use is offered; an unknown kind gets no guess."""
    for name, text in files.items():
        write(tmp_path / name, text)

    found = guess(tmp_path)

    assert found["command"] == command
    assert bool(found["because"]) == bool(command)


def test_settings_of_the_daemon_belong_to_the_home(tmp_path: Path) -> None:
    """They are written there from anywhere, and refused with the right place in a project's file."""
    files = SettingsFiles(tmp_path / "home", {})
    _, file = SettingsFileEditor(files, guess).change(str(tmp_path), "daemon.idle_minutes", "5")
    assert file == str(tmp_path / "home" / "config.toml")

    write(project_file(str(tmp_path)), "[daemon]\nidle_minutes = 1\n")
    with pytest.raises(BadInput, match="belongs in"):
        files.at(str(tmp_path))


def test_while_a_file_is_broken_what_it_said_before_counts(tmp_path: Path) -> None:
    """A typo stops nobody who is at work; a project's file that was never whole is refused."""
    files = SettingsFiles(tmp_path / "home", {})
    file = write(project_file(str(tmp_path)), "[limits]\nruns = 3\n")
    assert files.at(str(tmp_path)).limits.runs == 3
    write(file, "[limits\n")

    assert files.at(str(tmp_path)).limits.runs == 3
    with pytest.raises(BadInput, match=r"config\.toml"):
        files.check(str(tmp_path))
    with pytest.raises(BadInput):
        SettingsFiles(tmp_path / "home", {}).at(str(tmp_path))

    write(file, "[limits]\nruns = 55\n")
    assert files.at(str(tmp_path)).limits.runs == 55
    files.check(str(tmp_path))


def test_a_broken_home_file_leaves_the_defaults(tmp_path: Path) -> None:
    """The daemon can still stop, judge and leave."""
    write(tmp_path / "config.toml", "[limits\n")

    assert SettingsFiles(tmp_path, {}).at("") == Settings()


@pytest.mark.parametrize(
    "text",
    [
        '[sandbox]\nmode = "off"\n',
        '[sandbox]\nmode = "auto"\n',
        "[sandbox]\nnetwork = true\n",
        '[sandbox]\nwritable = ["~"]\n',
        '[sandbox]\nreadable = ["~/.ssh"]\n',
        '[work]\nenvironment = ["AWS_SECRET_ACCESS_KEY"]\n',
    ],
)
def test_a_repository_cannot_give_agents_more(tmp_path: Path, text: str) -> None:
    """Its settings file comes with it, and agents' changes land in it: it may only protect the user."""
    write(project_file(str(tmp_path)), text)

    with pytest.raises(BadInput, match="belongs in") as refusal:
        SettingsFiles(tmp_path / "home", {}).at(str(tmp_path))
    assert 'sandbox.mode = "on"' in refusal.value.hint


def test_a_repository_can_ask_for_a_sandbox(tmp_path: Path) -> None:
    """Also where the home's file goes without; the environment is the user's own last word."""
    write(tmp_path / "home" / "config.toml", '[sandbox]\nmode = "off"\nwritable = ["~/.cache/uv"]\n')
    write(project_file(str(tmp_path)), '[sandbox]\nmode = "on"\nnetwork = false\n')

    sandbox = SettingsFiles(tmp_path / "home", {}).at(str(tmp_path)).sandbox

    assert (sandbox.mode, sandbox.network, sandbox.writable) == (Confinement.ON, False, ("~/.cache/uv",))
    last = SettingsFiles(tmp_path / "home", {"WINDLASS_SANDBOX": "off"})
    assert last.at(str(tmp_path)).sandbox.mode is Confinement.OFF


def test_a_choice_is_one_of_its_words(tmp_path: Path) -> None:
    """Anything else is refused with the words, in a file and on the command line."""
    files = SettingsFiles(tmp_path, {})
    with pytest.raises(BadInput, match="one of auto, on, off"):
        files.set(files.home_file, "sandbox.mode", "maybe")
    write(files.home_file, "[sandbox]\nmode = true\n")
    with pytest.raises(BadInput, match="one of auto, on, off"):
        files.check("")
    desk = SettingsFileEditor(SettingsFiles(tmp_path / "home", {}), guess)
    assert desk.change(str(tmp_path), "sandbox.mode", "off") == ("off", str(tmp_path / "home" / "config.toml"))


@pytest.mark.parametrize(
    "text",
    [
        f"[limits]\nruns = {'9' * 5000}\n",
        f"[limits]\nruns = 0x{'f' * 5000}\n",
        f"[limits]\nruns = 1{'0' * 400}\n",
        f"[limits]\nrun_minutes = 0x{'f' * 5000}\n",
        f"[checks]\ncommand = 0x{'f' * 5000}\n",
        f"[sandbox]\nmode = [0x{'f' * 5000}]\n",
        f"[limits]\nruns = {'[' * 50_000}\n",
        f"{'a.' * 50_000}b = 1\n",
        "[limits]\nruns = 1979-05-27T07:32:00.5Z\n",
        "[limits]\nruns = 9999-99-99\n",
        "[limits]\nruns = nan\n",
        '[checks]\ncommand = "\\ud800"\n',
    ],
    ids=["digits", "hex", "float", "minutes", "text", "list", "nested", "dotted", "date", "no date", "nan", "half"],
)
def test_no_value_breaks_the_reader(tmp_path: Path, text: str) -> None:
    """Whatever stands in a project's file, it is named as that file's fault in a few words."""
    file = write(project_file(str(tmp_path / "repo")), text)

    with pytest.raises(BadInput) as caught:
        SettingsFiles(tmp_path, {}).at(str(tmp_path / "repo"))

    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 1000
