"""Logs: one JSON object per line, or coloured text for people, with the request id if any."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.util import Finalize
from typing import Any, TextIO

import structlog
from structlog.dev import plain_traceback
from structlog.processors import TimeStamper, format_exc_info
from structlog.typing import EventDict, Processor, WrappedLogger

from app.config import settings
from app.lib import json
from app.lib.seldom import Seldom

GATHERING_SECONDS = 0.1

# Log events about Redis, or the broker, being unavailable. Every caller notices, but one line a minute is enough.
OF_REDIS = frozenset(
    (
        *("bells.lost", "bell.not_cleared", "bell.not_noted", "editors.not_known", "viewers.not_noted"),
        *("viewers.not_known", "ready.redis_away", "live.redis_away", "presence.not_said", "live.not_shown"),
    )
)
_of_redis = Seldom(60.0)


def configure(process_type: str, gather: bool = False, stream: TextIO | None = None, least: int = logging.INFO) -> None:
    """Sends our events and the libraries' warnings to `stream` (default: standard error).

    LOG_FORMAT decides the format. `least` is the lowest level of our events.

    With `gather`, lines below a warning are buffered and written ten times a second: writing each line adds a quarter
    to the cost of a request. A process killed with SIGKILL loses its buffer.
    """
    stream = stream or sys.stderr
    process: EventDict = {}

    def name_process() -> None:
        process["process"] = f"{process_type}:{os.getpid()}"

    def add_process(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event.update(process)
        return event

    # Named again only after a fork, because asking for the pid at each line would cost a system call.
    name_process()
    os.register_at_fork(after_in_child=name_process)

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        TimeStamper(fmt="iso", utc=True),
        add_process,
    ]
    # Plain: if the package rich is installed, the default prints local variables, and some are secrets.
    renderers: list[Processor] = [structlog.dev.ConsoleRenderer(exception_formatter=plain_traceback)]
    if settings().log_format == "json":
        renderers = [format_exc_info, _hide_details, structlog.processors.JSONRenderer(serializer=_dumps)]
    structlog.configure(
        processors=[_seldom, *shared, *renderers],
        logger_factory=_always(Gathered(stream)) if gather else structlog.WriteLoggerFactory(stream),
        wrapper_class=structlog.make_filtering_bound_logger(least),
        cache_logger_on_first_use=True,
    )
    _bring_in_libraries(shared, renderers, stream)


def info_each(event: str, each: Iterable[EventDict]) -> None:
    """Logs the event once per mapping. Computes the fields that all lines share only once."""
    configured = structlog.get_config()
    *processors, render = configured["processors"]
    logger = configured["logger_factory"]()
    shared: Any = {"event": event}
    for processor in processors:
        shared = processor(logger, "info", shared)
    for fields in each:
        with suppress(structlog.DropEvent):
            logger.info(render(logger, "info", fields | shared))


class Gathered:
    """A logger that buffers its lines; a warning or worse flushes them at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: deque[str] = deque()
        self._writing = threading.Lock()
        # Unlike atexit, this also runs in the processes that Dramatiq forks.
        Finalize(None, self.write_out, exitpriority=0)
        threading.Thread(target=self._keep_writing_out, name="logs", daemon=True).start()

    def info(self, line: str) -> None:
        """Buffers the line for up to a tenth of a second."""
        self._lines.append(line)

    debug = msg = info

    def warning(self, line: str) -> None:
        """Writes the buffer and the line at once."""
        self._lines.append(line)
        self.write_out()

    error = critical = exception = fatal = warning

    def write_out(self) -> None:
        """Writes the buffer. Safe to call from any thread."""
        with self._writing:
            lines = [self._lines.popleft() + "\n" for _ in range(len(self._lines))]
            if lines:
                self._stream.write("".join(lines))
                self._stream.flush()

    def _keep_writing_out(self) -> None:
        while True:
            time.sleep(GATHERING_SECONDS)
            self.write_out()


def _always(logger: WrappedLogger) -> Callable[..., WrappedLogger]:
    return lambda *_: logger


def _bring_in_libraries(shared: list[Processor], renderers: list[Processor], stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove_meta, *renderers])
    )
    handler.addFilter(_is_wanted)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    # pika logs seven lines for each failed connection, although every caller logs the error that it gets.
    logging.getLogger("pika").setLevel(logging.CRITICAL)


def _seldom(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    if event.get("event") in OF_REDIS and not _of_redis.is_due():
        raise structlog.DropEvent
    return event


def _is_wanted(record: logging.LogRecord) -> bool:
    # Dramatiq's consumers log this every second, as critical, although they reconnect on their own.
    if record.name.startswith("dramatiq.") and "connection error" in str(record.msg):
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return _of_redis.is_due()
    return True


def _hide_details(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # PostgreSQL quotes values that break a constraint and lines of a statement, which may hold personal data.
    if "exception" in event:
        event["exception"] = re.sub(r"(?m)^(DETAIL|LINE \d+): .*$", r"\1: (not logged)", event["exception"])
    return event


def _dumps(value: object, **_: Any) -> str:
    try:
        return json.dumps(value).decode()
    except TypeError:
        return json.dumps({key: repr(inner) for key, inner in dict(value).items()}).decode()  # type: ignore[call-overload]
