"""A coding CLI that a person describes in settings: the fields of a provider, as one writes them in TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """A coding CLI of your own, by the name you give it; only in your home's file. See [providers.md](providers.md)."""

    summary: str = ""
    """A short description."""
    like: str = ""
    """A built-in provider that it is a variant of, such as another account; then few other keys are needed."""
    command: tuple[str, ...] = ()
    """The program and its first words."""
    non_interactive: tuple[str, ...] = ()
    """Flags that every run gets, so that nobody is asked anything."""
    prompt: str = "stdin"
    """How it gets its prompt: by `argument`, `flag`, `stdin` or `file`."""
    prompt_flag: str = ""
    """The flag before the prompt, or before the name of its file."""
    system_prompt_flag: str = ""
    """The flag before the prompt of an agent's file. Default: that text begins the prompt."""
    model_flag: str = ""
    """The flag before the name of a model."""
    permissions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Flags by permission: `read`, `edit`, `full`. Without those for `read`, only a sandbox can hold it to reading."""
    resume: tuple[str, ...] = ()
    """The words that go on in a session; `{session}` is its id. Without them, every run is a new session."""
    output: str = "plain"
    """Its output: `plain` text, or `json`, one event a line."""
    session: str = ""
    """Where its output tells the session: a field such as `data.id`, or in plain text a pattern with one group."""
    text: tuple[str, ...] = ()
    """Fields of an event that people see. Default: the whole line."""
    result: str = ""
    """The field with its final answer."""
    model: str = ""
    """The field with the model's name."""
    input_tokens: str = ""
    """The field with the input tokens of one event."""
    output_tokens: str = ""
    """The field with the output tokens of one event."""
    cost_usd: str = ""
    """The field with the price of one event, in dollars."""
    tool_uses: str = ""
    """The field that an event has when a tool is used: how many, a list of them, or anything else for one."""
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of lines that tell of trouble, by kind: `throttle`, `overload`, `quota`, `auth`, `billing` …"""
    claim: str = "signal"
    """When its work counts as done: after a `signal`, or also after an `exit` with 0 and a commit."""
    gently: str = "TERM"
    """The signal that asks it to end: `TERM`, `INT` or `HUP`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that its runs get, none of them secret; `~/` at the start of a value is your home."""
    secrets: tuple[str, ...] = ()
    """Names of your variables with credentials: only its runs get them."""
    variables: tuple[str, ...] = ()
    """Names of other variables of yours that its runs get."""
    config_dir: str = ""
    """The variable that names its own folder, if it has one."""
    folders: tuple[str, ...] = ()
    """Its own folders and files below your home, which a sandbox leaves to it, such as `.mycli`."""
    login: tuple[str, ...] = ()
    """Files below your home that are there when you are logged in."""
    version: tuple[str, ...] = ()
    """A command that prints its version."""
    install: str = ""
    """How to install it, in a sentence."""
