"""A model without a coding CLI: a process of ours (`windlass.model`) asks it, and uses tools of ours as it wants.

Models are written `vendor/name`. The key comes from the vendor's own variable, and only runs with that vendor's models
get it. This module has all facts about vendors; the library that speaks their protocols is an extra.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.agent import Permissions, ToolKind
from windlass.core.nouns.run import TroubleKind, Usage
from windlass.core.runs.provider import LineReading, Provider, StartRequest
from windlass.core.settings.models import ModelSettings
from windlass.providers.output.events import Event, amount, call, count, of_type, reader, shortened, words
from windlass.providers.output.troubles import read_plain, run_trouble

LIBRARY = "pydantic_ai"
EXTRA = "pip install 'windlass-agents[models]'"


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor of models: the variables that may hold its key, and the part of the library that it needs."""

    keys: tuple[str, ...]
    extra: str = "openai"
    module: str = "openai"
    address: str = ""
    """The variable with the server's address, if the address is the user's choice; such a server needs no key."""


VENDORS = {
    "anthropic": Vendor(("ANTHROPIC_API_KEY",), "anthropic", "anthropic"),
    "openai": Vendor(("OPENAI_API_KEY",)),
    "openai-chat": Vendor(("OPENAI_API_KEY",)),
    "openai-responses": Vendor(("OPENAI_API_KEY",)),
    "google": Vendor(("GOOGLE_API_KEY", "GEMINI_API_KEY"), "google", "google.genai"),
    "mistral": Vendor(("MISTRAL_API_KEY",), "mistral", "mistralai"),
    "groq": Vendor(("GROQ_API_KEY",), "groq", "groq"),
    "cohere": Vendor(("CO_API_KEY",), "cohere", "cohere"),
    "xai": Vendor(("XAI_API_KEY",), "xai", "xai_sdk"),
    "huggingface": Vendor(("HF_TOKEN",), "huggingface", "huggingface_hub"),
    "cerebras": Vendor(("CEREBRAS_API_KEY",)),
    "deepseek": Vendor(("DEEPSEEK_API_KEY",)),
    "fireworks": Vendor(("FIREWORKS_API_KEY",)),
    "moonshotai": Vendor(("MOONSHOTAI_API_KEY",)),
    "nebius": Vendor(("NEBIUS_API_KEY",)),
    "openrouter": Vendor(("OPENROUTER_API_KEY",)),
    "together": Vendor(("TOGETHER_API_KEY",)),
    "zai": Vendor(("ZAI_API_KEY",)),
    "ollama": Vendor(("OLLAMA_API_KEY",), address="OLLAMA_BASE_URL"),
    "vllm": Vendor(("VLLM_API_KEY",), address="VLLM_BASE_URL"),
}
"""The vendors of the library that take one key, by the library's names."""

_KEYS = tuple(dict.fromkeys(key for vendor in VENDORS.values() for key in vendor.keys))


def argv(start: StartRequest) -> tuple[str, ...]:
    session = ("--resume", start.session) if start.session else ("--session", start.new_session)
    system = ("--system", f"{start.folder}/system.md") if start.system else ()
    folders = tuple(word for repository in (start.worktree, *start.repositories) for word in ("--folder", repository))
    where = ("--base-url", start.base_url, "--protocol", _protocol(start.model)) if start.base_url else ()
    key = ("--key", start.key) if start.key else ()
    forget = tuple(word for name in sorted({*_KEYS, start.key} - {""}) for word in ("--forget", name))
    sandboxed = ("--sandboxed",) if start.sandboxed else ()
    program = (sys.executable, "-P", "-m", "windlass.model", "--model", start.model)
    return (*program, *session, *folders, *system, *where, *key, *forget, *sandboxed, *permit(start))


def _protocol(model: str) -> str:
    """The protocol of a server that imitates a vendor: for OpenAI, the older of its two."""
    vendor = model.partition("/")[0]
    return "openai-chat" if vendor == "openai" else vendor


def permit(start: StartRequest) -> tuple[str, ...]:
    tools = () if start.tools is None else ("--tools", ",".join(start.tools))
    return ("--permissions", str(start.permissions), *tools)


def takes(model: str) -> bool:
    """Whether a model is `vendor/name` of a vendor that we know."""
    vendor, slash, name = model.partition("/")
    return bool(slash and name) and vendor in VENDORS


def keys(model: str) -> tuple[str, ...]:
    """The variables that a run with this model gets."""
    vendor = VENDORS.get(model.partition("/")[0])
    return vendor.keys if vendor else ()


def ready(model: str, chosen: ModelSettings, is_set: Callable[[str], bool]) -> None:
    """Raise if the model can't be asked: no model, an unknown vendor, a missing part of the library, no key."""
    if not model:
        raise BadInput("The provider model needs a model.", hint="Add --model anthropic/claude-sonnet-4-5, or another.")
    if not takes(model):
        name = model.partition("/")[0]
        known = f"Write it as vendor/name; the vendors are: {', '.join(VENDORS)}."
        raise BadInput(f"{model} is no model of a vendor we know.", hint=f"{near_miss(name, VENDORS)} {known}".strip())
    vendor = VENDORS[model.partition("/")[0]]
    if not _is_there(vendor.module):
        raise Unavailable(
            f"For {model}, a part of the library is missing.",
            hint=f"Run `pip install 'pydantic-ai-slim[{vendor.extra}]'`.",
        )
    _require_key(model, vendor, chosen, is_set)


def _require_key(model: str, vendor: Vendor, chosen: ModelSettings, is_set: Callable[[str], bool]) -> None:
    if chosen.key:
        if not is_set(chosen.key):
            raise Unavailable(f"There is no key for {model}.", hint=_how_to_set(chosen.key))
    elif chosen.base_url or (vendor.address and is_set(vendor.address)):
        return
    elif vendor.address:
        raise Unavailable(
            f"Nobody knows where the server of {model} is.",
            hint=f"Set {vendor.address}, or write base_url into [models.{model.partition('/')[0]}].",
        )
    elif not any(map(is_set, vendor.keys)):
        raise Unavailable(f"There is no key for {model}.", hint=_how_to_set(vendor.keys[0]))


def _how_to_set(variable: str) -> str:
    return f"Run `export {variable}=…` and `windlass daemon stop`; the next command starts it with that."


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a package above it is missing, or half there
        return False


# ── its output ─────────────────────────────────────────────────────────────────────────────────────────────


def _event(event: Event) -> LineReading:
    match event.get("type"):
        case "session":
            return LineReading(session=words(event.get("session")), model=words(event.get("model")))
        case "text":
            return LineReading(text=words(event.get("text")))
        case "call":
            tool = words(event.get("tool"))
            told = call("$" if tool == "shell" else tool, words(event.get("what")))
            return LineReading(text=told, usage=Usage(tool_uses=1))
        case "answer":
            return LineReading(text=shortened(words(event.get("text"))))
        case "usage":
            return LineReading(usage=_usage(event))
        case "result":
            return LineReading(result=words(event.get("text")), ended=True)
        case "error":
            why, told = words(event.get("text")), words(event.get("trouble"))
            kind = TroubleKind(told) if told in list(TroubleKind) else TroubleKind.ERROR
            return LineReading(text=why, trouble=run_trouble(kind, why, amount(event.get("until")) or None), ended=True)
    return LineReading()


def _usage(event: Event) -> Usage:
    return Usage(
        input_tokens=count(event.get("input")),
        output_tokens=count(event.get("output")),
        cost_usd=amount(event.get("cost")),
        cached_tokens=count(event.get("cached")),
        calls=1,
    )


provider = Provider(
    name="model",
    summary="any vendor's model without a coding CLI: a process of ours asks it, with files, search and shell",
    argv=argv,
    read=reader(_event, read_plain),
    telling=of_type("call", "error", "result", "session", "usage"),
    system=True,
    tools=True,
    picks=(ToolKind.READ, ToolKind.SEARCH, ToolKind.EDIT, ToolKind.SHELL),
    models=True,
    takes=takes,
    ready=ready,
    keys=keys,
    resumes=True,
    module=LIBRARY,
    distribution="pydantic-ai-slim",
    install=f"Run `{EXTRA}`.",
    enter=f"Set a vendor's variable, such as {_KEYS[0]}, before the daemon starts.",
    permit=permit,
    reads=True,
    may={
        Permissions.READ: "read in its worktree; it has no shell, and writes nothing but its report",
        Permissions.EDIT: "edit in its worktree; its shell commands have your rights",
        Permissions.FULL: "edit in its worktree; its shell commands have your rights",
    },
    structured=True,
    secrets=_KEYS,
    variables=("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "VLLM_BASE_URL"),
)
