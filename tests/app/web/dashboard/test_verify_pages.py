"""Verify a webhook: which part differs."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from flask import Flask

from app.database import rows
from app.domain.webhooks import endpoints, verifications
from app.lib import signatures
from tests.cast import Api, everything_stored, make_endpoint
from tests.pages import Person

VERIFY = "settings/developers/verify"


class Sent:
    """A delivery, with what its receiver got."""

    def __init__(self, api: Api) -> None:
        self.endpoint_id, self.secret = make_endpoint(api.workspace_id, "https://shop.example/hooks")
        api.contact(email="ada@example.com", first_name="Ada")
        found = "SELECT deliveries.id, body FROM deliveries JOIN events ON events.id = event_id"
        [(self.delivery_id, body)] = rows(f"{found} WHERE deliveries.endpoint_id = %s", (self.endpoint_id,))
        self.body = bytes(body).decode()

    def headers(self, body: str | None = None, secret: str | None = None, at: int | None = None) -> str:
        signature = signatures.sign([secret or self.secret], at or int(time.time()), (body or self.body).encode())
        return f"X-Service-Signature: {signature}\nX-Service-Delivery: {self.delivery_id}"


@pytest.fixture
def sent(api: Api) -> Sent:
    return Sent(api)


def found(who: Person, headers: str, body: str, **fields: Any) -> list[tuple[str, str, str]]:
    """The findings: part, verdict and sentence."""
    answer = who.post(VERIFY, {"headers": headers, "body": body} | fields)
    assert answer.status_code == 200, answer.text
    finding = r'<dt><span class="state (\w+)">[^<]*</span> ([^<]+)</dt>\s*<dd dir="auto">([^<]*)</dd>'
    return [(part, verdict, text) for verdict, part, text in re.findall(finding, answer.text)]


def verdicts(findings: list[tuple[str, str, str]]) -> dict[str, str]:
    return {part: verdict for part, verdict, _ in findings}


def test_what_was_sent_is_found_to_be_so(owner: Person, sent: Sent) -> None:
    findings = found(owner, sent.headers(), sent.body)

    assert verdicts(findings) == {"Body": "good", "Secret": "good", "Timestamp": "good"}
    assert "the secret of https://shop.example/hooks" in str(findings)


def test_the_signature_alone_will_do_with_an_endpoint_or_its_secret(owner: Person, sent: Sent) -> None:
    signature = sent.headers().split("\n")[0].partition(": ")[2]

    for named in (sent.endpoint_id, "https://shop.example/hooks"):
        assert verdicts(found(owner, signature, sent.body, endpoint=named))["Secret"] == "good"
    assert verdicts(found(owner, signature, sent.body, secret=sent.secret))["Secret"] == "good"
    assert verdicts(found(owner, signature, sent.body)) == {"Secret": "warn", "Timestamp": "good"}


def test_an_old_t_is_told_but_not_if_it_was_young_when_it_came(owner: Person, sent: Sent) -> None:
    an_hour_ago = int(time.time()) - 3600
    headers = sent.headers(at=an_hour_ago)

    findings = found(owner, headers, sent.body)
    assert verdicts(findings) == {"Body": "good", "Secret": "good", "Timestamp": "bad"}
    assert "60 minutes old" in str(findings)
    assert verdicts(found(owner, headers, sent.body, received_at=str(an_hour_ago + 2)))["Timestamp"] == "good"


def test_a_t_in_the_future_points_to_the_clock(owner: Person, sent: Sent) -> None:
    headers = sent.headers(at=int(time.time()) + 4000)

    assert "66 minutes ahead" in str(found(owner, headers, sent.body))


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ("", "There is no X-Service-Signature."),
        ("Content-Type: application/json", "There is no X-Service-Signature."),
        ("X-Service-Signature: v1=" + "a" * 64, "It has no t"),
        ("X-Service-Signature: t=soon,v1=" + "a" * 64, "It has no t"),
        ("X-Service-Signature: t=1764000000", "It has no v1"),
        ("X-Service-Signature: t=1764000000000,v1=" + "a" * 64, "t is not in seconds"),
        ("X-Service-Signature: t=1764000000,v1=" + "A" * 64, "lowercase hex"),
    ],
)
def test_what_is_wrong_with_the_header_is_told(owner: Person, sent: Sent, headers: str, sentence: str) -> None:
    assert sentence in str(found(owner, headers, sent.body, endpoint=sent.endpoint_id))


def test_a_body_that_was_written_anew_is_told_from_another_one(owner: Person, sent: Sent) -> None:
    pretty = json.dumps(json.loads(sent.body), indent=2)

    findings = found(owner, sent.headers(), pretty)
    assert verdicts(findings)["Body"] == "bad"
    assert "the same JSON in other bytes" in str(findings)
    assert "They differ from byte 2 on" in str(findings)

    findings = found(owner, sent.headers(), sent.body.replace("Ada", "Eve"))
    assert "The body is not the one that was sent" in str(findings)
    assert verdicts(findings) == {"Body": "bad", "Secret": "good", "Timestamp": "good"}


def test_a_body_that_was_written_anew_is_known_without_the_delivery(owner: Person, sent: Sent) -> None:
    signature = sent.headers().split("\n")[0]

    findings = found(owner, signature, json.dumps(json.loads(sent.body), ensure_ascii=False), secret=sent.secret)

    assert "written anew" in str(findings)
    assert verdicts(findings)["Secret"] == "good"


def test_line_ends_that_a_browser_adds_do_not_count(owner: Person, sent: Sent) -> None:
    assert verdicts(found(owner, sent.headers(), sent.body + "\r\n"))["Body"] == "good"


def test_a_wrong_secret_is_told(owner: Person, sent: Sent) -> None:
    findings = found(owner, sent.headers(), sent.body, secret="whsec_other")

    assert "The secret that you pasted is another one" in str(findings)
    assert verdicts(findings)["Body"] == "good"


def test_the_secret_of_another_endpoint_is_told(owner: Person, sent: Sent, api: Api) -> None:
    _, secret = make_endpoint(api.workspace_id, "https://other.example/hooks")

    findings = found(owner, sent.headers(secret=secret), sent.body)

    assert "v1 was made with the secret of https://other.example/hooks" in str(findings)


def test_the_previous_secret_is_told_from_the_present_one(owner: Person, sent: Sent, api: Api) -> None:
    api.done(api.post(f"webhooks/endpoints/{sent.endpoint_id}/rotate-secret"))

    assert "the previous secret of https://shop.example/hooks, which still signs" in str(
        found(owner, sent.headers(), sent.body)
    )
    rows("UPDATE endpoints SET previous_secret_until = now() - interval '1 hour'")
    assert "which no longer signs" in str(found(owner, sent.headers(), sent.body))


def test_a_signature_that_nothing_explains_is_told(owner: Person, sent: Sent) -> None:
    findings = found(owner, sent.headers(secret="whsec_nobodys"), sent.body)

    assert verdicts(findings) == {"Signature": "bad", "Body": "good", "Timestamp": "good"}


def test_a_body_that_is_no_longer_kept_cannot_be_compared(owner: Person, sent: Sent) -> None:
    rows("DELETE FROM events")

    findings = found(owner, sent.headers(), sent.body)

    assert verdicts(findings)["Delivery"] == "warn"


def test_nothing_of_another_workspace_is_used(stranger: Person, others: Api, sent: Sent) -> None:
    who = Person(stranger.client, others.workspace_id, stranger.account_id, stranger.email)

    findings = found(who, sent.headers(), sent.body)
    assert verdicts(findings) == {"Secret": "warn", "Timestamp": "good", "Delivery": "warn"}
    refused = who.post(VERIFY, {"headers": sent.headers(), "body": sent.body, "endpoint": sent.endpoint_id})
    assert refused.status_code == 422
    assert stranger.post(VERIFY).status_code == 404


def test_a_pasted_secret_is_neither_shown_nor_kept_nor_logged(
    owner: Person, sent: Sent, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = endpoints.new_secret()

    answer = owner.post(VERIFY, {"headers": sent.headers(), "body": sent.body, "secret": secret})

    assert secret not in answer.text
    assert sent.secret not in answer.text
    assert secret not in everything_stored()
    assert secret not in str(answer.headers)
    assert secret not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"headers": "x" * 8001}, "At most 8,000 bytes"),
        ({"body": "x" * (verifications.LONGEST_BODY_BYTES + 1)}, "At most 524,288 bytes"),
        ({"secret": "x" * 201}, "At most 200 bytes"),
        ({"endpoint": "whe_x"}, "has no endpoint with that address"),
        ({"endpoint": "a\0b"}, "has no endpoint with that address"),
        ({"received_at": "yesterday"}, "in seconds since 1970"),
        ({"received_at": "9" * 14}, "in seconds since 1970"),
    ],
)
def test_what_is_too_long_or_unknown_is_refused_at_its_field(
    owner: Person, fields: dict[str, str], sentence: str
) -> None:
    answer = owner.post(VERIFY, {"headers": "kept", "body": ""} | fields)

    assert answer.status_code == 422
    assert sentence in answer.text
    assert "headers" in fields or "kept" in answer.text


@pytest.mark.parametrize("body", ["", "{", "null", "[" * 5000, '{"a": 1e999}', "\0"])
def test_any_body_is_looked_at(owner: Person, sent: Sent, body: str) -> None:
    assert verdicts(found(owner, sent.headers(), body))["Body"] == "bad"


def test_what_was_pasted_is_escaped(owner: Person, sent: Sent) -> None:
    text = owner.post(VERIFY, {"headers": sent.headers(), "body": "<script>alert(1)</script>"}).text

    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_agents_and_staff_verify_without_a_visit(agent: Person, support: Person, sent: Sent) -> None:
    for who in (agent, support):
        assert verdicts(found(who, sent.headers(), sent.body))["Secret"] == "good"


def test_the_endpoint_of_the_address_is_filled_in(owner: Person, sent: Sent, app: Flask) -> None:
    assert f'value="{sent.endpoint_id}"' in owner.page(f"{VERIFY}?endpoint_id={sent.endpoint_id}")
