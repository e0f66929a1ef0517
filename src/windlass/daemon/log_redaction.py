"""The daemon's log, without the secrets that its environment holds for agents."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from windlass.core.runs.redact import Redactor, is_secret_name

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class RedactedLog(logging.Formatter):
    """Writes whole records, tracebacks too, with secrets redacted."""

    def __init__(self, environment: Mapping[str, str], secrets: Iterable[str]) -> None:
        super().__init__(FORM)
        names = {*secrets, *(name for name in environment if is_secret_name(name))}
        self._redactor = Redactor(environment[name] for name in names if name in environment)

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(super().format(record))
