"""What Schemathesis must know and no schema can say. It loads this file itself, with a Python of its own."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict, deque
from datetime import datetime
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode

IDENTIFIER = re.compile(r"\b([a-z]{2,3})_[0-7][0-9a-hjkmnp-tv-z]{25}\b")
PHONE = re.compile(r"\+4930[0-9]{6,8}")
# Identifiers that answers named lately, by their prefixes.
LIVE: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=8))

# Formats that are known by their names alone, and the times that the database can keep.
schemathesis.openapi.format("phone", st.from_regex(PHONE, fullmatch=True))
schemathesis.openapi.format("timezone", st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "UTC"]))
schemathesis.openapi.format(
    "date-time", st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1)).map(lambda at: f"{at.isoformat()}Z")
)


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def json_lines(context: Any, value: Any) -> bytes:
    # What is no text, made up to be refused, might be a line of JSON after all.
    return value.encode(errors="replace") if isinstance(value, str) else b""


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
        # A key stands for one request.
        case.headers["Idempotency-Key"] = str(uuid4())
    if case.query:
        # Only the server can make a cursor.
        case.query.pop("cursor", None)
        _order(case.query, "since", "until")
    if case.meta.phase.name.value == "stateful":
        # There the effects of a write are expected at once.
        if case.method != "GET":
            case.headers["Prefer"] = "wait=20"
    else:
        case.path_parameters = {name: _live(value) for name, value in (case.path_parameters or {}).items()}
    if isinstance(case.body, dict):
        _mend(case.body)


def _mend(body: dict[str, Any]) -> None:
    for name, value in body.items():
        body[name] = _live(value)
    if isinstance(body.get("custom_fields"), dict):
        # OpenAPI 3.0 cannot say what names may be.
        named = body["custom_fields"].items()
        body["custom_fields"] = {name: value for name, value in named if 1 <= len(name) <= 100 and "\0" not in name}
    if "address" in body:
        body["address"] = "https://shop.example/hooks"
    if body.get("phone") and not PHONE.fullmatch(body["phone"]):
        # One phase takes any text for a format that it does not know.
        body["phone"] = "+4930123456"
    if "contact_id" in body:
        # Those that were named before may have been deleted since.
        body["contact_id"] = _new_contact()
    if "amount" in body:
        # How many decimal places it may have depends on the currency.
        body["amount"] = "19"
    _order(body, "since", "until")
    _order(body, "starts_at", "ends_at")


def _new_contact() -> str:
    address = f"{os.environ['BELLHOP']}/api/v1/workspaces/{os.environ['BELLHOP_WORKSPACE']}/contacts"
    headers = {"Authorization": f"Bearer {os.environ['BELLHOP_TOKEN']}", "Content-Type": "application/json"}
    body = json.dumps({"external_id": str(uuid4())}).encode()
    with urlopen(Request(address, body, headers | {"Prefer": "wait=20"}), timeout=30) as answer:
        return str(json.load(answer)["data"]["id"])


def _live(value: Any) -> Any:
    """An identifier of something that is there in the place of one that was made up."""
    found = IDENTIFIER.fullmatch(value) if isinstance(value, str) else None
    return LIVE[found[1]][-1] if found and LIVE[found[1]] else value


def _order(values: dict[str, Any], first: str, last: str) -> None:
    """The second of two times comes after the first, by a second at least."""
    if first in values and last in values:
        # As texts, a second's beginning would come after its fractions: "Z" comes after ".".
        values[first], values[last] = sorted([values[first], values[last]], key=datetime.fromisoformat)
        if values[first][:19] == values[last][:19]:
            values[last] = "9998-12-31T00:00:00Z"
