from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.config import settings
from app.domain.automations.steps.base import Done, Step, StepFailed, Wait
from app.domain.automations.steps.http_request import KIND

ADDRESS = "https://shop.example/vouchers"


@dataclass
class Moment:
    """As far as this step looks at it. `{name}` in a template is one of the variables."""

    step: Step
    variables: Mapping[str, str] = field(default_factory=dict)
    answer: Mapping[str, Any] | None = None
    is_simulated: bool = False

    def render(self, template: str) -> str:
        try:
            return template.format(**self.variables)
        except KeyError as error:
            raise StepFailed("template", f"There is no {error}.") from error


@pytest.fixture(autouse=True)
def no_private_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DATABASE_URL", "postgresql://bellhop@db.test/bellhop")
    monkeypatch.setenv("REDIS_URL", "redis://redis.test")
    monkeypatch.setenv("SECRET_KEY", "k" * 32)
    monkeypatch.delenv("WEBHOOK_ALLOWED_NETWORKS", raising=False)
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def moment(fields: Mapping[str, Any] | None = None, **options: Any) -> Any:
    step = Step("call", "http_request", {"method": "POST", "address": ADDRESS} | dict(fields or {}), None)
    return Moment(step, **options)


def begun(fields: Mapping[str, Any], **variables: str) -> Wait:
    outcome = KIND.begin(moment(fields, variables=variables))
    assert isinstance(outcome, Wait)
    return outcome


def request_of(fields: Mapping[str, Any], **variables: str) -> Mapping[str, Any]:
    request = begun(fields, **variables).request
    assert request
    return request


def answer(status: int | None = 200, body: str = "", error: Any = None, **fields: Any) -> dict[str, Any]:
    facts = {"is_whole": True, "duration_ms": 12, "attempts": 1}
    return {"status": status, "body": body, "error": error} | facts | fields


def test_the_run_waits_for_the_response_to_the_rendered_request() -> None:
    fields = {"address": ADDRESS + "/{number}", "headers": {"X-Shop": "{shop}"}, "body": {"to": ["{mail}", 1, None]}}

    outcome = begun(fields, number="7", shop="Wool", mail='a"b@shop.example')

    assert (outcome.waits_for, outcome.until) == ("response", None)
    assert outcome.request == {
        "method": "POST",
        "address": ADDRESS + "/7",
        "headers": {"X-Shop": "Wool", "Content-Type": "application/json"},
        "body": '{"to":["a\\"b@shop.example",1,null]}',
    }


def test_a_body_that_is_a_template_is_sent_as_text() -> None:
    request = request_of({"body": "Dear {name}"}, name="Ada")

    assert request["body"] == "Dear Ada"
    assert request["headers"] == {"Content-Type": "text/plain; charset=utf-8"}


def test_a_content_type_of_the_definition_stays() -> None:
    request = request_of({"body": "a={a}", "headers": {"content-type": "application/x-www-form-urlencoded"}}, a="1")

    assert request["headers"] == {"content-type": "application/x-www-form-urlencoded"}


def test_without_a_body_none_is_sent() -> None:
    request = request_of({"method": "GET"})

    assert request["body"] is None
    assert request["headers"] == {}


def test_the_log_has_no_secret() -> None:
    headers = {"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Accept": "text/csv"}

    outcome = begun({"headers": headers, "body": "x" * 5000})

    assert "s3cret" not in str((outcome.input, outcome.text))
    assert outcome.input["headers"]["Accept"] == "text/csv"
    assert len(outcome.input["body"]) == 2000


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("https://{host}/", "10.0.0.1 is not a public address"),
        ("http://shop.example", "must begin with https://"),
        ("https://shop.example/{name}", "space"),
    ],
)
def test_an_address_that_must_not_be_called_fails_the_step_and_not_the_run(address: str, says: str) -> None:
    outcome = KIND.begin(moment({"address": address, "save_as": "x"}, variables={"host": "10.0.0.1", "name": "A B"}))

    assert isinstance(outcome, Done)
    assert outcome.code == "private_address"
    assert says in outcome.text
    assert outcome.saved["call"]["error"] == {"code": "private_address", "detail": outcome.text}
    assert outcome.saved["x"] is None


@pytest.mark.parametrize(
    "fields",
    [{"headers": {"X-Name": "{name}"}}, {"headers": {"X-Name": "x" * 5000}}, {"body": ["{long}"]}],
    ids=["line break", "long header", "long body"],
)
def test_what_cannot_be_sent_fails_the_step(fields: dict[str, Any]) -> None:
    outcome = KIND.begin(moment(fields, variables={"name": "a\r\nHost: evil.example", "long": "x" * 262_144}))

    assert isinstance(outcome, Done)
    assert outcome.code == "not_sent"


def test_a_template_that_cannot_be_rendered_fails_the_run() -> None:
    with pytest.raises(StepFailed) as failure:
        KIND.begin(moment({"body": {"to": "{nobody}"}}))

    assert failure.value.code == "template"


def test_a_simulation_sends_nothing() -> None:
    begun = KIND.begin(moment(is_simulated=True))
    outcome = KIND.resume(moment(is_simulated=True, answer=None))

    assert isinstance(begun, Wait)
    assert begun.request is None
    assert isinstance(outcome, Done)
    assert outcome.saved == {"call": {"status": None, "body": None, "error": None}}


def test_a_response_is_saved_whole_and_its_body_under_another_name() -> None:
    outcome = KIND.resume(moment({"save_as": "voucher"}, answer=answer(201, '{"code": "WOOL10"}')))

    assert isinstance(outcome, Done)
    assert outcome.saved == {
        "call": {"status": 201, "body": {"code": "WOOL10"}, "error": None},
        "voucher": {"code": "WOOL10"},
    }
    assert outcome.output == {"status": 201, "duration_ms": 12, "attempts": 1, "body": '{"code": "WOOL10"}'}


@pytest.mark.parametrize(
    ("body", "saved"),
    [
        ("hello", "hello"),
        ("", ""),
        ('{"a": 1', '{"a": 1'),
        ("[" * 500 + "]" * 500, "[" * 500 + "]" * 500),
        ('{"a\\u0000": ["b\\u0000c", 1]}', {"a": ["bc", 1]}),
    ],
    ids=["text", "nothing", "cut off", "too deep", "NUL"],
)
def test_a_body_is_parsed_if_it_is_json(body: str, saved: Any) -> None:
    outcome = KIND.resume(moment(answer=answer(body=body)))

    assert isinstance(outcome, Done)
    assert outcome.saved["call"]["body"] == saved


def test_a_failure_is_saved_and_the_run_goes_on() -> None:
    error = {"code": "status", "detail": "The server answered 500 (Internal Server Error)."}

    outcome = KIND.resume(moment({"save_as": "voucher"}, answer=answer(500, "oops", error, attempts=3)))

    assert isinstance(outcome, Done)
    assert (outcome.code, outcome.text) == ("status", error["detail"])
    assert outcome.saved == {"call": {"status": 500, "body": "oops", "error": error}, "voucher": None}
    assert outcome.output["attempts"] == 3


def test_the_log_says_that_a_response_was_cut() -> None:
    outcome = KIND.resume(moment(answer=answer(body="x" * 65_536, is_whole=False)))

    assert isinstance(outcome, Done)
    assert "Only the beginning" in outcome.text
    assert len(outcome.output["body"]) == 2000


@pytest.mark.parametrize("name", ["Host", "content-length", "Connection", "Idempotency-Key", "Transfer-Encoding"])
def test_a_header_of_ours_is_refused(name: str) -> None:
    [fault] = KIND.check({"address": ADDRESS, "headers": {name: "x"}}, "/steps/0")

    assert fault.pointer == f"/steps/0/headers/{name}"


def test_a_header_without_a_proper_name_or_twice_is_refused() -> None:
    faults = list(KIND.check({"address": ADDRESS, "headers": {"a/b": "x", "X-A": "1", "x-a": "2"}}, "/steps/0"))

    assert [fault.pointer for fault in faults] == ["/steps/0/headers/a~1b", "/steps/0/headers/x-a"]


def test_other_headers_are_not() -> None:
    assert list(KIND.check({"address": ADDRESS, "headers": {"Authorization": "Bearer x"}}, "/steps/0")) == []
    assert list(KIND.check({"address": ADDRESS}, "/steps/0")) == []


@pytest.mark.parametrize("address", ["http://shop.example/", "https://10.0.0.1/", "https://localhost/", "shop.example"])
def test_an_address_that_is_no_template_is_checked_beforehand(address: str) -> None:
    [fault] = KIND.check({"address": address}, "/steps/0")

    assert fault.pointer == "/steps/0/address"
    assert list(KIND.check({"address": f"{address}{{{{ contact.id }}}}"}, "/steps/0")) == []
