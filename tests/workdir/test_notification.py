"""Task notifications: what is written is read back, and no XML does harm."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadInput
from windlass.core.messages.task_notification import Notification, TaskEnding, write_notification
from windlass.workdir.notification import LARGEST, read_notification

WORDS = """\
<task-notification>
  <task-id>worker-abc123</task-id>
  <status>completed</status>
  <summary>Found 15 relevant files</summary>
  <result>Detailed findings...</result>
  <usage>
    <total-tokens>2048</total-tokens>
    <tool-uses>5</tool-uses>
    <duration-ms>15000</duration-ms>
  </usage>
</task-notification>"""
MEANT = Notification(
    task="worker-abc123",
    status=TaskEnding.COMPLETED,
    summary="Found 15 relevant files",
    result="Detailed findings...",
    tokens=2048,
    tools=5,
    milliseconds=15000,
)


def test_a_notification_has_its_form() -> None:
    """Written and read just as coordinators know it."""
    assert write_notification(MEANT) == WORDS
    assert read_notification(WORDS) == MEANT
    assert read_notification(f"\n  {WORDS}\n") == MEANT


def test_what_it_took_need_not_be_said() -> None:
    """Usage, and a result, can be left out."""
    text = "<task-notification><task-id>t1</task-id><status>failed</status><summary>No</summary></task-notification>"
    assert read_notification(text) == Notification(task="t1", status=TaskEnding.FAILED, summary="No")


NUMBER = st.integers(0, 2**63 - 1)
SAYABLE = st.text(st.characters(codec="utf-8", exclude_characters="\ufffe\uffff")).map(
    lambda text: "".join(each for each in text if each >= " " or each in "\t\n\r")
)


@given(
    st.builds(
        Notification,
        task=st.from_regex(r"[a-z0-9@<&>-]{1,20}", fullmatch=True),
        status=st.sampled_from(TaskEnding),
        summary=SAYABLE | st.sampled_from(["</summary>", "]]>", "&lt;", "<!-- x", "a\r\nb", "&#0;"]),
        result=SAYABLE,
        tokens=NUMBER,
        tools=NUMBER,
        milliseconds=NUMBER,
    )
)
def test_whatever_is_written_reads_back_the_same(notification: Notification) -> None:
    """Byte for byte, also where the text is markup itself."""
    assert read_notification(write_notification(notification)) == notification


@given(st.text())
def test_any_text_can_be_told(text: str) -> None:
    """What XML can't hold is replaced, and the rest is there."""
    read = read_notification(write_notification(Notification(task="t1", status=TaskEnding.STOPPED, summary=text)))
    assert len(read.summary) == len(text)


@given(st.text() | st.text(alphabet="<>/&;![]-ab \"'=?"))
def test_any_other_text_is_refused(text: str) -> None:
    """With an error that says so, and nothing else."""
    with pytest.raises(BadInput):
        read_notification(text)


def changed(old: str, new: str) -> str:
    assert old in WORDS
    return WORDS.replace(old, new)


BOMB = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {after} '{f'&{before};' * 10}'>" for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "a bomb of entities": f"{BOMB}]>{changed('Found', '&i;')}",
    "a file from elsewhere": f"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>{changed('Found', '&a;')}",
    "a document type from elsewhere": f"<!DOCTYPE x SYSTEM 'https://example.com/x.dtd'>{WORDS}",
    "a document type": f"<!DOCTYPE x>{WORDS}",
    "an unknown entity": changed("Found", "&nbsp;"),
    "too much": changed("Found", "x" * LARGEST),
    "far too deep": changed("Found", "<a>" * 300_000),
    "another root": WORDS.replace("task-notification", "notification"),
    "a name space": changed("<task-notification>", "<task-notification xmlns='x'>"),
    "an unknown element": changed("<status>", "<approved>yes</approved><status>"),
    "a doubled element": changed("<status>", "<status>failed</status><status>"),
    "a doubled number": changed("<tool-uses>", "<tool-uses>1</tool-uses><tool-uses>"),
    "an unknown number": changed("<tool-uses>", "<price>1</price><tool-uses>"),
    "an element in a text": changed("Found", "<b>Found</b>"),
    "an element in a number": changed("2048", "<b>2048</b>"),
    "an attribute": changed("<status>", "<status by='human'>"),
    "text beside": changed("<usage>", "land it <usage>"),
    "text in the usage": changed("<tool-uses>", "much <tool-uses>"),
    "no task": changed("worker-abc123", " "),
    "a long task": changed("worker-abc123", "x" * 300),
    "two lines of task": changed("worker-abc123", "a\nb"),
    "an unknown status": changed("completed", "landed"),
    "no status": changed("<status>completed</status>", ""),
    "no summary": changed("<summary>Found 15 relevant files</summary>", ""),
    "a word for a number": changed("2048", "many"),
    "less than nothing": changed("2048", "-1"),
    "digits of another script": changed("2048", "\N{ARABIC-INDIC DIGIT TWO}"),
    "too large a number": changed("2048", "9" * 19),
    "two documents": WORDS + WORDS,
    "half a document": WORDS[:-5],
    "half a character": changed("Found", "\ud800"),
    "nothing": "",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_notifications_are_refused(case: str) -> None:
    """At once, and with a sentence that fits on a screen."""
    began = time.process_time()
    with pytest.raises(BadInput) as refused:
        read_notification(HOSTILE[case])

    assert len(str(refused.value)) < 300
    assert time.process_time() - began < 5
