"""`http_request`: sends a request to another server, retried under one key; saves the response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.config import settings
from app.domain.automations.steps.base import NAME as STEP_NAME
from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepKind, Wait, Words, saved
from app.domain.triggers.plain_words import LONGEST_TEXT, cut
from app.errors import Fault, pointer_to
from app.lib import foreign_json, json, templates
from app.lib.addresses import LONGEST_ADDRESS, check_address
from app.lib.templates import TooLong
from app.outbound.wire_format import NAME, RESERVED, VALUE

MOST_BODY_BYTES = 262_144
LONGEST_HEADER = 4096
# The most characters of a body in the run's log.
EXCERPT = 2000

_NO_RESPONSE = "There is no response in a simulation. Give one as 'responses', under '{}'."
_TOO_LONG = f"The body is longer than {MOST_BODY_BYTES // 1024} KiB."
_OURS = RESERVED | {"idempotency-key"}
# Headers whose values are logged. Others may contain secrets.
_SHOWN = {"accept", "accept-language", "content-type", "user-agent"}


class _Unsendable(Exception):
    """The rendered request cannot be sent. The arguments are a code and a sentence."""


def begin(context: StepContext) -> Outcome:
    """Renders the request and waits for its response. Goes on with an error if it cannot be sent."""
    fields = context.step.fields
    request = {
        "method": fields["method"],
        "address": context.render(fields["address"]),
        "headers": {name: context.render(value) for name, value in fields.get("headers", {}).items()},
        "body": None,
    }
    headers = {name: value if name.lower() in _SHOWN else "(hidden)" for name, value in request["headers"].items()}
    shown = {**request, "headers": headers}
    try:
        if fields.get("body") is not None:
            request["body"] = _rendered_body(context, request["headers"])
            shown["body"] = request["body"][:EXCERPT]
        _check(request)
    except _Unsendable as refusal:
        code, detail = refusal.args
        return _failed(context, {"code": code, "detail": detail}, input=shown)
    if context.is_simulated:
        return Wait("response", "A simulation sends no request.", input=shown)
    text = f"Waiting for the response to {request['method']} {request['address']}."
    return Wait("response", text, input=shown, request=request)


def resume(context: StepContext) -> Outcome:
    """Saves the response (see `http_requests.py`). The run continues even if there is none."""
    answer = context.answer
    if answer is None:  # in a simulation without input for the step
        return Done(_NO_RESPONSE.format(context.step.id), saved=_saved(context, None, None, None))
    output = {name: answer[name] for name in ("status", "duration_ms", "attempts")}
    output["body"] = answer["body"][:EXCERPT]
    body = _read(answer["body"])
    if answer["error"] is not None:
        return _failed(context, answer["error"], answer["status"], body, output=output)
    text = f"The server answered {answer['status']}."
    if not answer["is_whole"]:
        text += " Only the beginning of its response was kept."
    return Done(text, output=output, saved=_saved(context, answer["status"], body, None))


def _rendered_body(context: StepContext, headers: dict[str, str]) -> str:
    """Renders the body. Adds a Content-Type to headers without one. Raises _Unsendable if too long."""
    template = context.step.fields["body"]
    is_text = isinstance(template, str)
    try:
        rendered = templates.fill(template, context.render, MOST_BODY_BYTES)
    except TooLong as error:
        raise _Unsendable("not_sent", _TOO_LONG) from error
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "text/plain; charset=utf-8" if is_text else "application/json"
    return str(rendered) if is_text else json.dumps(rendered).decode()


def _check(request: Mapping[str, Any]) -> None:
    """Raises _Unsendable for a request that cannot or must not be sent.

    Does not resolve the host name, which may still lead to a private address.
    """
    if refusal := check_address(request["address"], settings().webhook_allowed_networks):
        raise _Unsendable("private_address", refusal)
    for name, value in request["headers"].items():
        if not VALUE.fullmatch(value):
            raise _Unsendable("not_sent", f"The header {name} contains a line break or another control character.")
        if len(value) > LONGEST_HEADER:
            raise _Unsendable("not_sent", f"The header {name} is longer than {LONGEST_HEADER:,} characters.")
    if len((request["body"] or "").encode()) > MOST_BODY_BYTES:
        raise _Unsendable("not_sent", _TOO_LONG)


def _failed(
    context: StepContext, error: Mapping[str, Any], status: int | None = None, body: Any = None, **logged: Any
) -> Done:
    return Done(error["detail"], **logged, saved=_saved(context, status, body, error), code=error["code"])


def _saved(context: StepContext, status: int | None, body: Any, error: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns additions to `steps`. The body of a successful response is saved under `save_as`."""
    return saved(context, {"status": status, "body": body, "error": error}, None if error else body)


def _read(text: str) -> Any:
    try:
        return foreign_json.loads(text)
    except ValueError:
        return text


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields the faults of an address without templates, and of each header's name."""
    address = step["address"]
    if "{" not in address and (refusal := check_address(address, settings().webhook_allowed_networks)):
        yield Fault(f"{pointer}/address", refusal)
    seen = set()
    for name in step.get("headers", {}):
        place = pointer + pointer_to("headers", name)
        if not NAME.fullmatch(name):
            yield Fault(place, "This is not the name of a header. Use letters, digits and hyphens.")
        elif name.lower() in _OURS:
            yield Fault(place, f"Bellhop sets the header {name} itself. Remove it.")
        elif name.lower() in seen:
            yield Fault(place, f"The header {name} is there twice. Remove one.")
        seen.add(name.lower())


KIND = StepKind(
    entry=Entry("Send a request", "globe", "request", {"method": "GET"}),
    words=lambda step, names: Words(f"Send a {step['method']} request", cut(str(step["address"]), LONGEST_TEXT)),
    description=(
        "Sends a request to another server and waits for the response: three attempts of at most 30 seconds, all with"
        " the same `Idempotency-Key`, and not before the time that a 429 or 503 names in `Retry-After` (up to an hour)."
        " `steps.<id>` then has `status`, `body` (parsed if it is JSON) and `error`, null or `code` and `detail`; the"
        " run continues in either case. At most 64 KiB of a response are kept."
    ),
    fields={
        "method": {"type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]},
        "address": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_ADDRESS,
            "description": "It must begin with `https://` and lead to a public server.",
        },
        "headers": {
            "type": "object",
            "maxProperties": 20,
            "additionalProperties": {"type": "string", "maxLength": LONGEST_HEADER},
            "description": "The log of a run hides the values of all but harmless ones.",
        },
        "body": {"description": "A template, sent as text; or any other JSON, whose strings are templates."},
        "save_as": STEP_NAME | {"description": "Another name in `steps`, for the body alone; null after an error."},
    },
    required=("method", "address"),
    templates=("address", "headers", "body"),
    results=("status", "body", "error"),
    begin=begin,
    resume=resume,
    check=check,
    example={
        "method": "POST",
        "address": "https://shop.example/vouchers",
        "headers": {"Authorization": "Bearer {{ trigger.variables.token }}"},
        "body": {"email": "{{ contact.email }}", "percent": 10},
        "save_as": "voucher",
    },
)
