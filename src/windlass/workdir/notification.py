"""Reading `<task-notification>`: agents write it, so it may be any XML, or none."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from windlass.core.errors import BadInput
from windlass.core.messages.task_notification import NUMBERS, ROOT, TEXTS, USAGE, Notification, check_notification

LARGEST = 1_000_000
"""Characters."""


def read_notification(text: str) -> Notification:
    """The notification that a text is. Raises BadInput for anything else, and looks nowhere else for a part of it."""
    if len(text) > LARGEST:
        raise BadInput(f"A <{ROOT}> has at most {LARGEST} characters, and this one has {len(text)}.")
    root = _parse(text)
    if root.tag != ROOT:
        raise BadInput(f"This is a <{root.tag[:40]}>, and no <{ROOT}>.")
    _check(root, {*TEXTS, USAGE})
    usage = root.find(USAGE)
    _check([] if usage is None else usage, set(NUMBERS))
    if _stray(root) or (usage is not None and _stray(usage)):
        raise BadInput(f"The <{ROOT}> has text outside of its elements.")
    texts = _texts(each for each in root if each is not usage)
    return check_notification(texts, _texts([] if usage is None else usage))


def _parse(text: str) -> Element:
    try:
        return fromstring(text.strip(), forbid_dtd=True, forbid_entities=True, forbid_external=True)
    except DefusedXmlException as error:
        raise BadInput(f"A <{ROOT}> may have no document type, and no entities of its own.") from error
    except ParseError as error:
        raise BadInput(f"The <{ROOT}> is no XML: {error}.", hint="Write & as &amp; and < as &lt;.") from error
    except ValueError as error:  # half characters
        raise BadInput(f"The <{ROOT}> can't be read: {error}.") from error


def _check(elements: Iterable[Element], known: Collection[str]) -> None:
    """Refuse what we do not know, and what is said twice."""
    seen: set[str] = set()
    for element in elements:
        if element.tag not in known:
            raise BadInput(f"The <{ROOT}> has a <{element.tag[:40]}>, which is none of {', '.join(sorted(known))}.")
        if element.tag in seen:
            raise BadInput(f"The <{ROOT}> has more than one <{element.tag}>.")
        if element.attrib or (len(element) and element.tag != USAGE):
            raise BadInput(f"The <{element.tag}> of a <{ROOT}> holds text, and nothing else.")
        seen.add(element.tag)


def _stray(element: Element) -> bool:
    """Whether there is text between the elements."""
    return any((each or "").strip() for each in (element.text, *(child.tail for child in element)))


def _texts(elements: Iterable[Element]) -> dict[str, str]:
    return {element.tag: element.text or "" for element in elements}
