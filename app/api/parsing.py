"""Reads what a request says: its body, its query, and where either is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from datetime import UTC, datetime
from functools import lru_cache, partial, wraps
from json import loads as loads_leniently
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeVar

import marshmallow
import structlog
from flask import Flask, Request, Response
from flask.globals import request_ctx
from flask.json.provider import JSONProvider
from marshmallow import RAISE, ValidationError, fields, missing, validate
from webargs.core import is_json
from werkzeug.exceptions import BadRequest, HTTPException, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.routing import BaseConverter, PathConverter

from app.api.openapi import DocumentedBlueprint
from app.errors import Fault, Invalid, NotFound, Unavailable
from app.lib import json

MAX_BODY_BYTES = 256 * 1024
MAX_FAULTS = 100
# Times that the database, and those that read from it, can say in any time zone.
STORABLE = validate.Range(datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
_BODY_REQUIRED = Fault("", "A JSON object is required.")
_BAD_TEXT = "The text holds a character that cannot be stored (U+0000 or half of a surrogate pair)."
_SCHEMA_MESSAGES = {"unknown": "This field is not known.", "type": "A JSON object is required."}
_PLAIN_JSON = frozenset({"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"})
_PART_BYTES = 64 * 1024
_log = structlog.get_logger(__name__)
View = Callable[..., Any]
T = TypeVar("T")


class Schema(marshmallow.Schema):
    """The base of every schema for a request: a field it does not know is an error."""

    error_messages = _SCHEMA_MESSAGES

    class Meta:
        unknown = RAISE

    def _deserialize(self, data: Any, **options: Any) -> Any:
        """Like marshmallow's, in less time while nothing is wrong: what is, that one finds.

        No field may have a data_key.
        """
        known = self.load_fields
        if isinstance(data, dict) and data.keys() <= known.keys() and not (options["many"] or options["partial"]):
            with suppress(ValidationError):
                loaded = {name: field.deserialize(data.get(name, missing), name, data) for name, field in known.items()}
                return {name: value for name, value in loaded.items() if value is not missing}
        return super()._deserialize(data, **options)


class Claim(fields.Boolean):
    """true or false, and nothing that Python takes for one of them, such as 1."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class Time(fields.AwareDateTime):
    """A time with its zone (RFC 3339), in UTC; at the ends of the calendar some cannot be said there."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> datetime:
        text = value.upper() if isinstance(value, str) else value  # `t` and `z` may be small (RFC 3339, 5.6)
        try:
            return super()._deserialize(text, *args, **options).astimezone(UTC)
        except OverflowError as error:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE) from error


class Rest(PathConverter):
    """The rest of a path, also where that begins with a slash: tags may be named so."""

    regex = ".+"
    part_isolating = False


class Identifier(BaseConverter):
    """What may be an identifier: `contacts/import` is no contact, and has methods of its own."""

    regex = "(?!import$)[^/]+"
    part_isolating = True  # werkzeug tries all rules one after the other where it may cross a slash


class Nothing(Schema):
    """A body or query that has no fields."""


class LimitedRequest(Request):
    """A request with the limit of this module; Flask's own would look into the configuration for it."""

    # One byte more than is accepted: werkzeug cuts a chunked body off at its limit without a word, so that only a
    # body that reaches past ours shows that it was too large.
    max_content_length = MAX_BODY_BYTES + 1


class JSON(JSONProvider):
    """Flask's JSON, by way of `app.lib.json`."""

    def dumps(self, obj: Any, **_: Any) -> str:
        return json.dumps(obj).decode()

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return json.loads(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        body = json.dumps(self._prepare_response_obj(args, kwargs))
        return Response(body, mimetype="application/json")


def install(app: Flask) -> None:
    """Gives `app` the JSON and the limits of this module."""
    app.json = JSON(app)
    app.request_class = LimitedRequest
    # No view is a coroutine; Flask would ask that of every hook and view anew for each request.
    app.ensure_sync = _as_it_is  # type: ignore[assignment, method-assign]


@contextmanager
def spooled_body(req: Request, most: int) -> Iterator[IO[bytes]]:
    """The raw body in a file, at its end: however slowly it comes, it takes no memory meanwhile.

    Raises RequestEntityTooLarge above so many bytes, BadRequest, and Unavailable where this machine has no room.
    """
    req.max_content_length = most + 1  # see LimitedRequest
    with SpooledTemporaryFile(MAX_BODY_BYTES) as body:
        try:
            while part := _read_to_end(partial(req.stream.read, _PART_BYTES)):
                body.write(part)
            body.flush()
        except OSError as error:  # of the file: one of the connection is a BadRequest by now
            _log.error("body.not_kept", error=str(error))
            with suppress(OSError):
                body.close()  # would else be tried on the way out, and fail there
            raise Unavailable("There is no room for the body at this moment. Try again shortly.") from error
        _check_length(req, body.tell(), most)
        yield body


def read_object(req: Request) -> dict[str, Any] | None:
    """The body's JSON object, None if there is no body. Raises what is refused with 400, 413, 415 or 422."""
    raw = _read_to_end(req.get_data)  # which keeps it for later readers
    _check_length(req, len(raw), MAX_BODY_BYTES)
    if not raw:
        return None
    if req.environ.get("CONTENT_TYPE") not in _PLAIN_JSON and not is_json(req.mimetype):
        raise UnsupportedMediaType
    if req.environ.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")
    return object_in(raw)


def object_in(raw: bytes) -> dict[str, Any]:
    """The JSON object that `raw` is. Raises what is refused with 400 or 422."""
    value = _read_json(raw)
    if not isinstance(value, dict):
        raise Invalid(_BODY_REQUIRED)
    return value


def pointer(*parts: object) -> str:
    """The RFC 6901 pointer to `parts`: `pointer("tags", 0)` is `/tags/0`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def faults_of(messages: object, schema: marshmallow.Schema) -> tuple[Fault, ...]:
    """What marshmallow says of data for `schema`, each message at its place; at most MAX_FAULTS."""
    found = _faults(messages, "", schema)
    return tuple(fault for _, fault in zip(range(MAX_FAULTS), found, strict=False))


def read_query(req: Request, schema: marshmallow.Schema) -> dict[str, Any]:
    """The parameters; lists for those that `schema` takes several times. Raises Invalid for others given twice."""
    if not req.query_string:
        return {}
    given = req.args.to_dict(flat=False)
    lists = {field.data_key or name for name, field in schema.load_fields.items() if isinstance(field, fields.List)}
    repeated = [name for name, values in given.items() if len(values) > 1 and name not in lists]
    if repeated:
        raise Invalid(*(Fault(pointer(name), "Give this parameter once.") for name in repeated[:MAX_FAULTS]))
    query = {name: values if name in lists else values[0] for name, values in given.items()}
    if b"%00" in req.query_string:
        _refuse_bad_text(query)
    return query


def load(schema: marshmallow.Schema, value: dict[str, Any]) -> Any:
    """What `schema` makes of `value`. Raises Invalid, naming the places."""
    try:
        return _narrowed(schema, frozenset(value.keys() & schema.load_fields.keys())).load(value)
    except ValidationError as error:
        raise Invalid(*faults_of(error.messages, schema)) from error


@lru_cache(maxsize=2048)
def _narrowed(schema: marshmallow.Schema, given: frozenset[str]) -> marshmallow.Schema:
    """`schema` without the fields that are not given and need not be: loading costs by the field, given or not."""
    needed = {name for name, field in schema.load_fields.items() if field.required or field.load_default is not missing}
    return type(schema)(only=given | needed)


class Blueprint(DocumentedBlueprint):
    """A blueprint whose views get what `arguments` says, and whose requests hold nothing that it does not say."""

    def arguments(
        self,
        schema: type[marshmallow.Schema],
        *,
        location: str = "json",
        required: bool = True,
        **documentation: Any,
    ) -> Callable[[View], View]:
        """Passes the body (`location="json"`) or the query (`"query"`), loaded by `schema`, to the view.

        It comes after the other positional arguments. With `required=False` a missing body counts as `{}`.
        """
        loaded_by = schema()
        described = {"in": location, "required": required, "schema": schema, **documentation}

        def read(req: Request) -> dict[str, Any]:
            if location == "query":
                return read_query(req, loaded_by)
            value = read_object(req)
            if value is None and required:
                raise Invalid(_BODY_REQUIRED)
            return value or {}

        def decorate(view: View) -> View:
            @wraps(view)
            def parsed(*args: Any, **kwargs: Any) -> Any:
                return view(*args, load(loaded_by, read(request_ctx.request)), **kwargs)

            apidoc = deepcopy(getattr(view, "_apidoc", {}))
            apidoc.setdefault("arguments", {}).setdefault("parameters", []).append(described)
            parsed._apidoc = apidoc  # type: ignore[attr-defined]
            return parsed

        return decorate

    def add_url_rule(self, rule: str, endpoint: str | None = None, view_func: Any = None, **options: Any) -> None:
        super().add_url_rule(rule, endpoint or view_func.__name__, _strict(view_func), **options)


def _strict(view: View) -> View:
    """`view`, refusing a query or a body where it has declared none, and what no path can name."""
    apidoc = getattr(view, "_apidoc", {})
    declared = apidoc.get("arguments", {}).get("parameters", ())
    has_query = any(parameter["in"] == "query" for parameter in declared)
    # One that is no JSON object is described by hand, and read by its view.
    has_body = any(parameter["in"] == "json" for parameter in declared) or "requestBody" in apidoc.get("manual_doc", {})
    nothing = Nothing()

    @wraps(view)
    def strict(*args: Any, **kwargs: Any) -> Any:
        req = request_ctx.request
        if kwargs and "\x00" in req.environ["PATH_INFO"]:
            raise NotFound
        if not has_query and req.query_string:
            load(nothing, read_query(req, nothing))
        if not has_body and req.method not in ("GET", "HEAD", "OPTIONS"):
            load(nothing, read_object(req) or {})
        return view(*args, **kwargs)

    return strict


def _as_it_is(view: View) -> View:
    return view


def _read_to_end(read: Callable[[], T]) -> T:
    try:
        return read()
    except HTTPException:
        raise
    except Exception as error:  # the server's own, of chunks that are none or a connection that was cut
        raise BadRequest("The body could not be read to its end.") from error


def _check_length(req: Request, length: int, most: int) -> None:
    if length > most:
        raise RequestEntityTooLarge
    # RFC 9112, section 8; gunicorn says nothing of it. Mostly the header need not be parsed to see that.
    if req.environ.get("CONTENT_LENGTH") != str(length) and length < (req.content_length or 0):
        raise BadRequest("The body is shorter than its Content-Length.")


def _read_json(raw: bytes) -> Any:
    try:
        value = json.loads(raw)
    except ValueError as error:
        if b"\\ud" in raw.lower():
            _refuse_lone_surrogates(raw)
        raise BadRequest(f"The body is not valid JSON: {error}.") from error
    if b"\\u0000" in raw:
        _refuse_bad_text(value)
    return value


def _refuse_lone_surrogates(raw: bytes) -> None:
    """Names the places of lone surrogates, if these are what is wrong with `raw`; our own reader does not."""
    try:
        value = loads_leniently(raw)
    except (ValueError, RecursionError):
        return
    _refuse_bad_text(value)


def _refuse_bad_text(value: Any) -> None:
    try:
        places = [place for _, place in zip(range(MAX_FAULTS), _bad_texts(value, ""), strict=False)]
    except RecursionError:
        return
    if places:
        raise Invalid(*(Fault(place, _BAD_TEXT) for place in places))


def _bad_texts(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, str):
        if _is_bad(value):
            yield at
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _bad_texts(inner, f"{at}/{index}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            if _is_bad(key):
                yield at
            else:
                yield from _bad_texts(inner, at + pointer(key))


def _is_bad(text: str) -> bool:
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)


def _faults(messages: object, at: str, shape: object) -> Iterator[Fault]:
    if isinstance(messages, dict):
        for key, inner in messages.items():
            if key == "_schema":
                yield from _faults(inner, at, shape)
            elif isinstance(shape, fields.Mapping) and isinstance(inner, dict) and inner.keys() <= {"key", "value"}:
                # marshmallow puts one level more here, to tell a wrong key from a wrong value.
                yield from _faults(inner.get("key", []), at + pointer(key), None)
                yield from _faults(inner.get("value", []), at + pointer(key), shape.value_field)
            else:
                yield from _faults(inner, at + pointer(key), _inside(shape, key))
    elif isinstance(messages, list):
        for message in messages:
            yield from _faults(message, at, shape)
    else:
        yield Fault(at, str(messages))


def _inside(shape: object, key: object) -> object:
    if isinstance(shape, fields.List):
        return shape.inner
    if isinstance(shape, fields.Nested):
        shape = shape.schema
    if isinstance(shape, marshmallow.Schema):
        if isinstance(key, int):
            return shape
        return next((field for name, field in shape.fields.items() if (field.data_key or name) == key), None)
    return None
