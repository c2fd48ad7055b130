"""Logs: one JSON object a line (or coloured text for people), with the request id wherever there is one."""

from __future__ import annotations

import logging
import sys

import structlog

from app.config import settings


def configure(process: str) -> None:
    """Sends our events and the libraries' warnings to standard error in the form that LOG_FORMAT asks for."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.CallsiteParameterAdder([structlog.processors.CallsiteParameter.PROCESS]),
        lambda _, __, event: {"process_type": process, **event},
    ]
    as_json = settings().log_format == "json"
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    )
    render: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer()]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    # A message of these names a bell or a connection; ours say more.
    logging.getLogger("dramatiq").setLevel(logging.WARNING)
