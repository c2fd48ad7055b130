"""What Schemathesis has to know and a schema cannot express. Schemathesis loads this file, in a Python of its own."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode

IDENTIFIER = re.compile(r"\b([a-z]{2,3})_[0-7][0-9a-hjkmnp-tv-z]{25}\b")
PHONE = re.compile(r"\+4930[0-9]{6,8}")
ADDRESS = "https://shop.example/hooks"
DEFINITION = {"triggers": [], "steps": [{"id": "mark", "kind": "add_tag", "tag": "{{ trigger.variables.tag }}"}]}
CREDENTIALS = {
    "telegram": {"bot_token": f"123456789:{'A' * 35}"},
    "whatsapp": {"access_token": "token", "app_secret": "secret", "verify_token": "verify"},
}
# Identifiers in recent responses, by prefix.
LIVE: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=8))

# Formats that Schemathesis knows only by name, and times that the database can store.
schemathesis.openapi.format("phone", st.from_regex(PHONE, fullmatch=True))
schemathesis.openapi.format("timezone", st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "UTC"]))
schemathesis.openapi.format(
    "date-time", st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1)).map(lambda at: f"{at.isoformat()}Z")
)


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def json_lines(context: Any, value: Any) -> bytes:
    # A value of another type, generated to be refused, might serialise to a valid line of JSON.
    return value.encode(errors="replace") if isinstance(value, str) else b""


@schemathesis.hook
def filter_body(context: Any, body: Any) -> bool:
    # An optional field that is empty counts as not given, whatever its schema says of its values.
    return not isinstance(body, dict) or not any(value in ("", [""]) for value in body.values())


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    for found in IDENTIFIER.finditer(response.text):
        if found[0] not in LIVE[found[1]]:
            LIVE[found[1]].append(found[0])


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if case.headers and "Idempotency-Key" in case.headers:
        # Each request needs a key of its own.
        case.headers["Idempotency-Key"] = str(uuid4())
    if case.query:
        # Only the server can create cursors.
        case.query.pop("cursor", None)
        # Only members of the workspace are known.
        case.query.pop("member_id", None)
        if "scheduled" in case.query:
            # A list of its own.
            for name in ("q", "since", "until"):
                case.query.pop(name, None)
        _order(case.query, "since", "until")
        # In order, and a year apart at most.
        case.query.pop("first_day", None)
        case.query.pop("last_day", None)
        if case.path.endswith("/counts"):
            # Full hours of the last days, or midnights.
            case.query.pop("since", None)
            case.query.pop("until", None)
    if case.meta.phase.name.value == "stateful":
        # This phase expects a write to have taken effect at once.
        if case.method != "GET":
            case.headers["Prefer"] = "wait=20"
    else:
        case.path_parameters = {name: _live(value) for name, value in (case.path_parameters or {}).items()}
    if case.path.endswith("/reauthorize"):
        # The kind of the channel decides which credentials it needs.
        kind = _kind(case.path_parameters["channel_id"])
        case.body, case.media_type = (
            {"credentials": CREDENTIALS[kind]} if kind in CREDENTIALS else {},
            "application/json",
        )
    if isinstance(case.body, dict):
        _mend(case.body)


def _mend(body: dict[str, Any]) -> None:
    for name, value in body.items():
        body[name] = _live(value)
    for name in ("custom_fields", "variables", "template", "event"):
        if isinstance(body.get(name), dict):
            # OpenAPI 3.0 cannot restrict property names, and no schema the texts inside any JSON.
            body[name] = {key: value for key, value in body[name].items() if _is_storable(key, value)}
    # Whether templates, conditions and identifiers of steps are right, no schema can say.
    if {"field", "is", "all", "any", "not"} & (body["filter"] if isinstance(body.get("filter"), dict) else {}).keys():
        body["filter"] = {"field": "contact.tags", "is": "contains", "value": "vip"}
    elif "filter" in body:
        # A filter needs a field, and times in order.
        body["filter"] = {"statuses": ["failed"]}
    if "definition" in body:
        body["definition"] = DEFINITION
    if body.get("goal"):
        body["goal"] = {"event": "sale.recorded", "within_seconds": 60}
    if "exits" in body:
        body["exits"] = []
    body.pop("from_step", None)
    body.pop("responses", None)  # by steps of the draft
    if isinstance(body.get("events"), dict):  # not the kinds of an endpoint
        del body["events"]
    if "address" in body:
        body["address"] = ADDRESS
    if body.get("phone") and not PHONE.fullmatch(body["phone"]):
        # One phase generates any text for formats that it does not know.
        body["phone"] = "+4930123456"
    if "contact_id" in body:
        # Those of earlier responses may have been deleted.
        body["contact_id"] = _create("contacts", {"external_id": str(uuid4())})
    if "segment_id" in body:
        # Those of earlier responses may have been deleted.
        del body["segment_id"]
        body["filter"] = {"field": "contact.tags", "is": "contains", "value": "vip"}
    if "automation_id" in body:
        del body["automation_id"]
        body["message"] = {"text": "Hello"}
    if isinstance(body.get("message"), dict):
        # No schema says which templates are right, nor that a file is kept once.
        body["message"] = {"text": "Hello {{ contact.first_name }}"}
    if body.get("time_zone") == "contact":
        body["time_zone"] = "workspace"  # the other needs a time
    if "channel_id" in body:
        body["channel_id"] = _channel()
    if "to" in body:
        # What names a recipient depends on the kind of channel; all kinds take a phone number.
        body["to"] = "+4930123456"
    if "settings" in body and "kind" not in body:
        # The kind of the channel that is changed decides which settings there are.
        body["settings"] = {"reopen": False}
    if isinstance(body.get("settings"), dict) and body["settings"].get("member_ids"):
        # Only members of the workspace can be named.
        body["settings"]["member_ids"] = None
    if body.get("attachments"):
        # A file is sent once.
        body["attachments"] = [{"upload_id": _upload()}]
    if isinstance(body.get("buttons"), list):
        # No two are alike, and a template has its own.
        body["buttons"] = [{"id": f"{n}", "label": f"Button {n}"} for n, _ in enumerate(body["buttons"][:3])]
        if body.get("template"):
            del body["buttons"]
    if isinstance(body.get("text"), str):
        # Each kind of channel has a limit of its own.
        body["text"] = body["text"][:1000]
    if "shortcut" in body and "text" in body:
        # The text of a saved reply is a template.
        body["text"] = body["text"].replace("{", "(")
    if "actions" in body:
        # What they name must exist, and their texts are templates.
        body["actions"] = [{"kind": "close"}]
    if body.keys() == {"member_id"}:
        del body["member_id"]
    if "send_at" in body:
        # A time within the next days, and before the message expires.
        body["send_at"] = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        body.pop("expires_at", None)
    if "endpoint_id" in body:
        body["endpoint_id"] = _create("webhooks/endpoints", {"address": ADDRESS, "events": ["contact.deleted"]})
    if "amount" in body:
        # The number of decimal places depends on the currency.
        body["amount"] = "19"
    _order(body, "since", "until")
    _order(body, "starts_at", "ends_at")


def _is_storable(key: str, value: Any) -> bool:
    text = json.dumps([key, value], ensure_ascii=False)
    halves = any("\ud800" <= character <= "\udfff" for character in text)
    return 1 <= len(key) <= 100 and "\\u0000" not in text and not halves


def _create(collection: str, document: dict[str, Any]) -> str:
    """The identifier of a new resource."""
    return str(_call(collection, json.dumps(document).encode())["id"])


def _channel() -> str:
    """The identifier of a channel; a new one's only if there is none, as a workspace has few."""
    found = _call("channels")
    created = {"kind": "web_chat", "name": "Shop", "settings": {"origins": ["https://shop.example"]}}
    return str(found[0]["id"]) if found else _create("channels", created)


def _kind(channel_id: str) -> str | None:
    """The kind of the channel; None if there is none."""
    return next((each["kind"] for each in _call("channels?limit=100") if each["id"] == channel_id), None)


def _upload() -> str:
    return str(_call("uploads", b"A file", "application/octet-stream")["id"])


def _call(collection: str, body: bytes | None = None, media_type: str = "application/json") -> Any:
    """The response's `data`. With a body, a POST."""
    address = f"{os.environ['BELLHOP']}/api/v1/workspaces/{os.environ['BELLHOP_WORKSPACE']}/{collection}"
    headers = {"Authorization": f"Bearer {os.environ['BELLHOP_TOKEN']}", "Prefer": "wait=20"}
    if body is not None:
        headers["Content-Type"] = media_type
    with urlopen(Request(address, body, headers), timeout=30) as answer:
        return json.load(answer)["data"]


def _live(value: Any) -> Any:
    """Replaces a generated identifier with one that exists."""
    found = IDENTIFIER.fullmatch(value) if isinstance(value, str) else None
    return LIVE[found[1]][-1] if found and LIVE[found[1]] else value


def _order(values: dict[str, Any], first: str, last: str) -> None:
    """Puts two times in order, at least a second apart."""
    if first in values and last in values:
        # Not compared as texts, in which a whole second sorts after its fractions.
        values[first], values[last] = sorted([values[first], values[last]], key=datetime.fromisoformat)
        if values[first][:19] == values[last][:19]:
            values[last] = "9998-12-31T00:00:00Z"
