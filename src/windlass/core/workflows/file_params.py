"""The parameters of a workflow, as its file describes them."""

from __future__ import annotations

from windlass.core.files.params import Param, ParamKind, value_of
from windlass.core.files.section import Section
from windlass.core.files.template import SETUP_NAME
from windlass.core.files.tree import Leaf

KEYS = ("type", "default", "required", "choices", "description")
LONGEST_DESCRIPTION = 500


def read_params(section: Section) -> tuple[Param, ...]:
    """All parameters of the file, also those with problems."""
    return tuple(_param(name, below, section) for name, below in section.sections("params"))


def _param(name: str, section: Section, top: Section) -> Param:
    if not SETUP_NAME.fullmatch(name) or name.startswith("no-"):
        words = f"{name!r} is no name for a parameter."
        remedy = "It has letters, digits, _ and -, begins with a letter, and not with no-."
        params = top.section("params")
        params.refuse(name, words, remedy, params.key_place(name))
    section.only(KEYS, {"options": "Did you mean choices?", "values": "Did you mean choices?"})
    kind = section.word("type", ParamKind, ParamKind.CHOICE if "choices" in section else ParamKind.STRING)
    choices = _choices(section, kind)
    default = _default(section, kind, choices)
    required = section.flag("required", default="default" not in section)
    if required and "default" in section:
        section.refuse("required", "what has a default is not required.", "Keep one of the two.")
    return Param(
        name=name,
        kind=kind,
        default=default,
        required=required,
        choices=choices,
        description=section.line("description", LONGEST_DESCRIPTION),
    )


def _choices(section: Section, kind: ParamKind) -> tuple[str, ...]:
    choices = tuple(dict.fromkeys(text.text for text in section.texts("choices")))
    if kind is ParamKind.CHOICE and not choices:
        section.refuse("choices", "a choice needs what can be chosen.", "Write `choices: [one, two]`.")
    elif kind is not ParamKind.CHOICE and "choices" in section:
        section.refuse("choices", f"there is nothing to choose from for type {kind}.", "Write `type: choice`.")
    return choices


def _default(section: Section, kind: ParamKind, choices: tuple[str, ...]) -> str | None:
    node = section.node("default")
    if "default" not in section:
        return None
    if kind is ParamKind.STRING and (node is None or (isinstance(node, Leaf) and not node.text.strip())):
        return node.text if isinstance(node, Leaf) else ""
    required = "Leave it out if there is none."
    return section.checked("default", lambda text: value_of(kind, text, choices), None, required=required)
