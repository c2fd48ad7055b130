"""Logs: one JSON object a line (or coloured text for people), with the request id wherever there is one."""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Any

import structlog
from structlog.processors import TimeStamper, format_exc_info
from structlog.typing import EventDict, Processor, WrappedLogger

from app.config import settings
from app.lib import json


def configure(process_type: str) -> None:
    """Sends our events and the libraries' warnings to standard error in the form that LOG_FORMAT asks for."""

    def add_process(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event["process"] = f"{process_type}:{os.getpid()}"
        return event

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        TimeStamper(fmt="iso", utc=True),
        add_process,
    ]
    renderers: list[Processor] = [structlog.dev.ConsoleRenderer()]
    if settings().log_format == "json":
        renderers = [format_exc_info, _hide_details, structlog.processors.JSONRenderer(serializer=_dumps)]
    structlog.configure(
        processors=[*shared, *renderers],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    )
    _bring_in_libraries(shared, renderers)


def _bring_in_libraries(shared: list[Processor], renderers: list[Processor]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove_meta, *renderers])
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)


def _hide_details(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # PostgreSQL names the values that break a rule, and they may be somebody's.
    if "exception" in event:
        event["exception"] = re.sub(r"(?m)^DETAIL: .*$", "DETAIL: (not logged)", event["exception"])
    return event


def _dumps(value: object, **_: Any) -> str:
    try:
        return json.dumps(value).decode()
    except TypeError:
        return json.dumps({key: repr(inner) for key, inner in dict(value).items()}).decode()  # type: ignore[call-overload]
