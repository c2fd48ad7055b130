"""An OpenTelemetry collector on loopback: takes spans over OTLP/HTTP, and shows those of a trace as a tree."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent
from opentelemetry.proto.trace.v1.trace_pb2 import Status

PATH = "/v1/traces"


@dataclass(frozen=True)
class Span:
    """A span that was received. Times are Unix times; `links` are traces and spans."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    start: float
    end: float
    attributes: dict[str, Any]
    is_error: bool
    links: Sequence[tuple[str, str]]


class Collector:
    """Takes spans at http://127.0.0.1:<port>/v1/traces. `start` again after `stop` listens at the same port."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.port = 0
        self._server: ThreadingHTTPServer | None = None
        self._connections: list[socket.socket] = []
        self._is_free = threading.Event()

    @property
    def url(self) -> str:
        """The value of OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Takes spans from now on."""
        self._is_free.set()
        if self._server is None:
            self._listen()

    def hang(self) -> None:
        """Takes connections and requests from now on, but does not answer."""
        self._is_free.clear()

    def _listen(self) -> None:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                collector._connections.append(self.connection)

            def do_POST(self) -> None:
                assert self.path == PATH, self.path
                content = self.rfile.read(int(self.headers["Content-Length"]))
                collector._is_free.wait()
                collector.spans.extend(_read(ExportTraceServiceRequest.FromString(content)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Refuses connections from now on, and ends those that there are. Safe to repeat."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        while self._connections:
            with suppress(OSError):
                self._connections.pop().shutdown(socket.SHUT_RDWR)

    def trace(self, trace_id: str) -> list[Span]:
        """The spans of a trace, in the order in which they began."""
        return sorted((span for span in list(self.spans) if span.trace_id == trace_id), key=lambda span: span.start)


def paths(spans: Iterable[Span]) -> list[str]:
    """Each span as the way to it from the root of its trace: `web POST /x > writes contacts.upsert`."""
    known = {span.span_id: span for span in spans}

    def path(span: Span) -> str:
        above = known.get(span.parent_id)
        return f"{path(above) if above else ''} > {_service(span)} {span.name}".removeprefix(" > ")

    return sorted(path(span) for span in known.values())


def tree(spans: Sequence[Span]) -> str:
    """The trace for people: what began when, in milliseconds from its beginning, and how long it took."""
    known, first = {span.span_id for span in spans}, min(span.start for span in spans)

    def lines(parent: Span | None, depth: int) -> Iterator[str]:
        for span in spans:
            if (span.parent_id == parent.span_id) if parent else (span.parent_id not in known):
                named = f"{'  ' * depth}{span.name}{' (error)' if span.is_error else ''}"
                starts, takes = (span.start - first) * 1000, (span.end - span.start) * 1000
                yield f"{named:50} {_service(span):12} {starts:8.1f} {takes:7.1f}"
                yield from lines(span, depth + 1)

    return "\n".join([f"{'span':50} {'process':12} {'starts':>8} {'takes':>7}", *lines(None, 0)])


def _service(span: Span) -> str:
    return span.service.removeprefix("bellhop-")


def _read(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource_spans in request.resource_spans:
        service = _values(resource_spans.resource.attributes)["service.name"]
        for scope_spans in resource_spans.scope_spans:
            for sent in scope_spans.spans:
                yield Span(
                    service,
                    sent.name,
                    Sent.SpanKind.Name(sent.kind).removeprefix("SPAN_KIND_"),
                    sent.trace_id.hex(),
                    sent.span_id.hex(),
                    sent.parent_span_id.hex(),
                    sent.start_time_unix_nano / 1e9,
                    sent.end_time_unix_nano / 1e9,
                    _values(sent.attributes),
                    sent.status.code == Status.STATUS_CODE_ERROR,
                    [(link.trace_id.hex(), link.span_id.hex()) for link in sent.links],
                )


def _values(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, str(kind))
