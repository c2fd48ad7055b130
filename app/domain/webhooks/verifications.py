"""Verifications: compare a webhook that somebody received with the delivery that was sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from cryptography.fernet import InvalidToken

from app.config import settings
from app.domain.webhooks.endpoints import QUOTA
from app.domain.work import events
from app.errors import NotFound
from app.lib import clock, json, signatures, vault
from app.lib.signatures import TOLERANCE_SECONDS, Signature
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint

LONGEST_HEADERS = 8_000
LONGEST_SECRET = 200
LONGEST_BODY_BYTES = 512 * 1024
# The most endpoints with the same address whose secrets are tried.
MOST_ALIKE = 20
_SHOWN_BYTES = 60
# How many bytes are hashed while trying the secrets of other endpoints: about a fifth of a second.
_MOST_HASHED_BYTES = 64 * 1024 * 1024
_YOUR_SECRET = "the secret that you pasted"


@dataclass(frozen=True, slots=True)
class Received:
    """A received webhook, as pasted. `endpoints`: the endpoints that may have received it."""

    workspace_id: str
    signature: str
    body: bytes
    delivery_id: str
    at: datetime
    endpoints: Sequence[Endpoint] = ()
    secret: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one thing that was checked: good, bad, or open if it cannot be told.

    `part`: the name of that thing, such as "Timestamp". `text`: the reason, for people.
    """

    part: str
    verdict: Literal["good", "bad", "open"]
    text: str


@dataclass(slots=True)
class _Key:
    """A secret, and a description of its owner."""

    whose: str
    secret: str = field(repr=False)


@dataclass(slots=True)
class _Sent:
    """The delivery: its body, None if unknown, and the endpoints whose secrets may have signed it."""

    endpoints: Sequence[Endpoint]
    body: bytes | None


def verify(received: Received) -> list[Finding]:
    """Returns the verdicts on all parts, most telling first. Stores nothing, and reveals no secret."""
    signature, sent = signatures.parse(received.signature), _sent(received)
    faults = [*_header_faults(received.signature, signature), *_time_faults(signature, received.at)]
    if signature.timestamp is None or not signature.values:
        return [*faults, *_delivery(received, sent), *_body(received.body, sent.body)]
    keys = _keys(received, sent)
    return [*_match(received, signature, keys, sent), *faults, *_delivery(received, sent)]


def _sent(received: Received) -> _Sent:
    try:
        delivery = Delivery.find(received.workspace_id, received.delivery_id)
        event = events.find(received.workspace_id, delivery.event_id)
    except NotFound:
        return _Sent(received.endpoints, None)
    endpoints = received.endpoints or list(
        Endpoint.select().where(Endpoint.workspace_id == received.workspace_id, Endpoint.id == delivery.endpoint_id)
    )
    return _Sent(endpoints, None if event.body is None else bytes(event.body))


def _header_faults(text: str, signature: Signature) -> Iterator[Finding]:
    part = "Signature header"
    if not text:
        yield Finding(part, "bad", "There is no X-Service-Signature. Every delivery has one: something removed it.")
        return
    if signature.timestamp is None:
        yield Finding(part, "bad", "It has no t, or t is not a number. It looks like t=1764000000,v1=5257a8…")
    elif signature.timestamp > 10**11:
        yield Finding(part, "bad", "t is not in seconds. It is signed as it was sent, in seconds since 1970.")
    if not signature.values:
        yield Finding(part, "bad", "It has no v1, so there is no signature to compare.")
    elif not any(len(value) == 64 and value.isalnum() and value == value.lower() for value in signature.values):
        yield Finding(part, "bad", "v1 is not the lowercase hex of a SHA-256: 64 digits from 0 to 9 and a to f.")


def _time_faults(signature: Signature, at: datetime) -> Iterator[Finding]:
    if signature.timestamp is None:
        return
    age = int(at.timestamp()) - signature.timestamp
    if age > TOLERANCE_SECONDS:
        yield Finding(
            "Timestamp",
            "bad",
            f"t is {_span(age)} old; receivers reject what is older than {TOLERANCE_SECONDS} seconds. If it was "
            "younger when it came, give the time at which it came. Otherwise look at your server's clock, or at what "
            "held it up.",
        )
    elif age < -TOLERANCE_SECONDS:
        yield Finding("Timestamp", "bad", f"t lies {_span(-age)} ahead. Your clock, or the time you gave, is late.")
    else:
        yield Finding("Timestamp", "good", f"t is {_span(abs(age))} old, within {TOLERANCE_SECONDS} seconds.")


def _keys(received: Received, sent: _Sent) -> list[_Key]:
    pasted = [_Key(_YOUR_SECRET, received.secret)] if received.secret else []
    return [*pasted, *(key for endpoint in sent.endpoints for key in _keys_of(endpoint))]


def _keys_of(endpoint: Endpoint) -> Iterator[_Key]:
    stored = [(f"the secret of {endpoint.address}", endpoint.secret)]
    if endpoint.previous_secret is not None:
        is_over = endpoint.previous_secret_until is not None and endpoint.previous_secret_until <= clock.now()
        when = "which no longer signs" if is_over else "which still signs beside the new one"
        stored.append((f"the previous secret of {endpoint.address}, {when}", endpoint.previous_secret))
    for whose, sealed in stored:
        try:
            yield _Key(whose, vault.decrypt(settings().secret_keys, bytes(sealed)))
        except InvalidToken:
            continue


def _match(received: Received, signature: Signature, keys: Sequence[_Key], sent: _Sent) -> Iterator[Finding]:
    if not keys:
        text = "Choose the endpoint, or paste its secret: without one v1 cannot be computed."
        yield Finding("Secret", "open", text)
        yield from _body(received.body, sent.body)
        return
    forms = _forms(received.body, sent.body)
    for body, finding in forms:
        for key in keys:
            if signatures.is_signed(key.secret, signature, body):
                yield finding
                yield from _told_of_key(key, keys)
                return
    for key in _others(received.workspace_id, sent.endpoints, sum(len(body) for body, _ in forms)):
        for body, finding in forms:
            if signatures.is_signed(key.secret, signature, body):
                yield Finding("Secret", "bad", f"v1 was made with {key.whose}, not with what you verify with.")
                yield finding
                return
    text = "v1 does not match. The body, t or v1 is not as it was sent, or another secret made v1."
    yield Finding("Signature", "bad", text)
    yield from _body(received.body, sent.body)


def _told_of_key(key: _Key, keys: Sequence[_Key]) -> Iterator[Finding]:
    if key.whose != _YOUR_SECRET and keys[0].whose == _YOUR_SECRET:
        yield Finding("Secret", "bad", f"The secret that you pasted is another one: v1 was made with {key.whose}.")
    else:
        yield Finding("Secret", "good", f"v1 was made with {key.whose}.")


def _others(workspace_id: str, known: Sequence[Endpoint], cost_bytes: int) -> Iterator[_Key]:
    most = min(QUOTA.most, max(1, _MOST_HASHED_BYTES // (2 * cost_bytes + 1)))
    found = Endpoint.in_workspace(workspace_id).order_by(Endpoint.id.desc()).limit(most)
    known_ids = {endpoint.id for endpoint in known}
    for endpoint in found:
        if endpoint.id not in known_ids:
            yield from _keys_of(endpoint)


def _forms(body: bytes, sent: bytes | None) -> list[tuple[bytes, Finding]]:
    """Returns the forms in which the body may have been signed, each with the finding if it matches."""
    as_it_is = Finding("Body", "good", "v1 matches: this is the body that was signed, byte for byte.")
    forms = [(body, as_it_is)]
    if (stripped := body.rstrip(b"\r\n")) != body:
        text = "v1 matches without the line break at the end. If pasting has not added it, your server has."
        forms.append((stripped, Finding("Body", "good", text)))
    if sent is not None and sent != body:
        forms.append((sent, _difference(body, sent)))
    elif sent is None and (compact := _compact(body)) is not None and compact != body:
        text = (
            "The body was written anew: v1 matches the same JSON without spaces, as it was sent. Verify the raw "
            "bytes, before anything parses them."
        )
        forms.append((compact, Finding("Body", "bad", text)))
    return forms


def _body(body: bytes, sent: bytes | None) -> Iterator[Finding]:
    if sent is None:
        return
    if body.rstrip(b"\r\n") == sent:
        yield Finding("Body", "good", "The body is the one that was sent, byte for byte.")
    else:
        yield _difference(body, sent)


def _difference(body: bytes, sent: bytes) -> Finding:
    if not body:
        return Finding("Body", "bad", "The body is empty. The one that was sent is not.")
    at = next((i for i, (ours, yours) in enumerate(zip(sent, body, strict=False)) if ours != yours), None)
    at = min(len(sent), len(body)) if at is None else at
    where = f"They differ from byte {at + 1} on: sent was {_excerpt(sent, at)}, yours is {_excerpt(body, at)}."
    mine, theirs = _parsed(body), _parsed(sent)
    if mine is not None and mine == theirs:
        text = "The body was written anew: it is the same JSON in other bytes. Verify the raw bytes, before parsing."
        return Finding("Body", "bad", f"{text} {where}")
    return Finding("Body", "bad", f"The body is not the one that was sent. {where}")


def _delivery(received: Received, sent: _Sent) -> Iterator[Finding]:
    if not received.delivery_id:
        return
    if sent.body is None:
        text = "This workspace has no such delivery, or its body is no longer kept, so the body cannot be compared."
        yield Finding("Delivery", "open", text)


def _compact(body: bytes) -> bytes | None:
    parsed = _parsed(body)
    return None if parsed is None else json.dumps(parsed)


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _excerpt(text: bytes, at: int) -> str:
    found = text[at : at + _SHOWN_BYTES].decode(errors="replace")
    return f"“{found}”" if found else "at its end"


def _span(seconds: int) -> str:
    for limit, size, unit in ((120, 1, "seconds"), (7200, 60, "minutes"), (172_800, 3600, "hours")):
        if seconds < limit:
            return f"{seconds // size} {unit}"
    return f"{seconds // 86_400} days"
