"""The workflows of the source document, as they are printed there, and all that they take for granted.

`gh` is a stand-in that knows one pull request; the models are played by a coding CLI of the person's own, an actor that
does in each of its runs what a test has written down for it.
"""

from __future__ import annotations

from pathlib import Path

from e2e_stage import Stage

WORKFLOWS = Path(__file__).parent / "workflows"
"""Byte for byte; `context/` has the forms of that key."""
MODEL = "claude-sonnet-4-5"

DIFF = """\
diff --git a/login.py b/login.py
--- a/login.py
+++ b/login.py
@@ -1 +1,2 @@
-def login(): ...
+def login(user):
+    return user  # TODO(@coder): ${{ token }} $(touch /tmp/hurt) `id`
"""
"""With all that must stay what it is: letters."""
PULL_REQUEST = '{"body":"Ask @coder, not @reviewer.","files":[{"path":"login.py"}],"title":"Let people log in"}'
BROKEN, MENDED = "def login(user):\n    return user\n", "def login(user):\n    return checked(user)\n"

GH = f"""\
#!/bin/sh
case "$*" in
"pr diff") cat <<'END'
{DIFF}END
;;
"pr view --json title,body,files") echo '{PULL_REQUEST}' ;;
*) echo "gh: $*?" >&2; exit 64 ;;
esac
"""
ACTOR = """\
#!/bin/sh
# actor --model NAME < PROMPT
play="{folder}/play"
number=1
while [ -e "$play/$WINDLASS_AGENT.told-$number" ]; do number=$((number + 1)); done
{{ echo "$@"; cat; }} > "$play/$WINDLASS_AGENT.told-$number"
echo "$WINDLASS_AGENT" >> "$play/order"
. "$play/$WINDLASS_AGENT.part-$number"
"""
PROVIDER = """
[providers.actor]
command = ["{folder}/bin/actor"]
model_flag = "--model"
"""
PREFERRED = '[models.anthropic]\nprefer_cli = "actor"\n'
"""The file says only `model:`, and so who runs it is said here."""


class Theatre:
    """A stage with a pull request, a `gh` that knows it, and actors in place of the models."""

    def __init__(self, house: Stage, settings: str = PREFERRED) -> None:
        self.house = house
        self.play = house.folder / "play"
        self.play.mkdir()
        has_pull_request(house)
        _program(house, "actor", ACTOR.format(folder=house.folder))
        with (house.state / "config.toml").open("a") as file:
            file.write(PROVIDER.format(folder=house.folder) + settings)

    def casts(self, instance: str, **parts: tuple[str, ...]) -> None:
        """Write down what each agent of an instance does in its first run, in its second …"""
        for name, runs in parts.items():
            for number, part in enumerate(runs, 1):
                (self.play / f"{_agent(name, instance)}.part-{number}").write_text(f"set -e\n{part}")

    def told(self, name: str, instance: str, number: int = 1) -> str:
        """The words and the prompt that an agent got in a run."""
        return (self.play / f"{_agent(name, instance)}.told-{number}").read_text()

    def order(self, instance: str) -> list[str]:
        """Who was started in an instance, in order."""
        started = (self.play / "order").read_text().split()
        return [each.partition("@")[0] for each in started if each.partition("@")[2] == instance]

    def said(self, instance: str) -> list[tuple[str, str]]:
        """Who said what in an instance's channel; people and agents alone."""
        items = self.house.wl("peek", "--channel", f"@{instance}", "--json").value
        return [(item["from"].partition("@")[0], item["message"]) for item in items if item["from"] != "system"]

    def document(self, instance: str) -> str:
        return self.house.wl("context", "document", "read", "--instance", instance).out

    def file(self, name: str) -> str:
        """What a person finds in a file of the repository; nothing if it is not there."""
        path = self.house.repo / name
        return path.read_text() if path.is_file() else ""

    def anew(self) -> None:
        """Main as it was before anything was mended."""
        if self.house.git("show", "main:login.py") + "\n" != BROKEN:
            self.house.commit({"login.py": BROKEN}, "Begin anew")


def has_pull_request(house: Stage) -> None:
    """The person's repository, with what the pull request brings, and a `gh` that knows of it."""
    _program(house, "gh", GH)
    house.commit({"login.py": BROKEN}, "Let people log in")


def printed(house: Stage, name: str, *, context: str | None = "context:\n", rest: str = "", **providers: str) -> str:
    """A printed workflow as a file in the repository, with the prompts that it names beside it.

    Another printed form may stand in place of its `context`, or none at all (None); and of its setup and kickoff. Only
    where several programs work together, an agent's provider is added.
    """
    text = (WORKFLOWS / f"{name}.yaml").read_text()
    assert text.count("context:\n") == 1
    text = text.replace("context:\n", context or "")
    if rest:
        text = text[: text.index("setup:\n")] + rest
    for agent, provider in providers.items():
        text = text.replace(f"\n  {agent}:\n", f"\n  {agent}:\n    provider: {provider}\n")
    (house.repo / name / "prompts").mkdir(parents=True, exist_ok=True)
    (house.repo / name / f"{name}.yaml").write_text(text)
    for each in ("coordinator", "reviewer", "coder"):
        prompt = f"You are the {each} of this team, and do what a {each} does (scenario:{name}-{each}).\n"
        (house.repo / name / f"prompts/{each}.md").write_text(prompt)
    return f"{name}/{name}.yaml"


def _agent(name: str, instance: str) -> str:
    return f"{name}@{instance}" if instance else name


def _program(house: Stage, name: str, text: str) -> None:
    path = house.folder / "bin" / name
    path.write_text(text)
    path.chmod(0o755)
