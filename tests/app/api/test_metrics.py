from __future__ import annotations

import pytest
from flask.testing import FlaskClient
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app import bells, metrics
from app.database import transaction
from app.domain.deliveries import stops
from app.models.endpoints import Endpoint
from app.outbound import answered
from tests.cast import KEY, Api

# Labels whose values are the routes, kinds of writes and so on: callers cannot add to them.
FEW_VALUES = {
    *(
        "method",
        "route",
        "status",
        "kind",
        "outcome",
        "answer",
        "reason",
        "mail",
        "name",
        "type",
        "bound",
        "directory",
        "disk",
        "version",
        "stream",
        "cause",
    ),
    *("le", "generation", "implementation", "major", "minor", "patchlevel", "version"),
}


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_metrics_are_in_the_text_format_of_prometheus(client: FlaskClient) -> None:
    client.get("/healthz")

    names = {family.name for family in text_string_to_metric_families(generate_latest(REGISTRY).decode())}
    assert {"http_requests", "http_request_duration_seconds", "bellhop_jobs_accepted", "bellhop_bells"} <= names
    assert {"process_cpu_seconds", "process_resident_memory_bytes"} <= names


def test_no_label_grows_with_customers_or_what_they_send(api: Api) -> None:
    api.contact(email="ada@example.com", tags=["vip"])

    told = generate_latest(REGISTRY).decode()

    samples = [sample for family in text_string_to_metric_families(told) for sample in family.samples]
    assert {label for sample in samples for label in sample.labels} <= FEW_VALUES
    assert api.workspace_id not in told
    assert "ada@" not in told


def test_requests_are_counted_by_route(api: Api) -> None:
    route = "/api/v1/workspaces/<workspace>/contacts/<contact_id>"
    before = value("http_requests_total", method="GET", route=route, status="404")
    timed = value("http_request_duration_seconds_count", method="GET", route=route)

    api.get("contacts/con_1")
    api.get("contacts/con_2")

    assert value("http_requests_total", method="GET", route=route, status="404") == before + 2
    assert value("http_request_duration_seconds_count", method="GET", route=route) == timed + 2


def test_made_up_paths_and_methods_share_a_name(client: FlaskClient) -> None:
    before = value("http_requests_total", method="other", route="none", status="404")

    client.open("/ada@example.com", method="MAKEUP")
    client.open("/grace@example.com", method="INVENT")

    assert value("http_requests_total", method="other", route="none", status="404") == before + 2


def test_the_public_port_tells_no_figures(client: FlaskClient) -> None:
    answer = client.get("/metrics")

    assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")


def test_writes_are_counted_when_accepted_and_when_applied(api: Api) -> None:
    accepted = value("bellhop_jobs_accepted_total", kind="contacts.upsert")
    succeeded = value("bellhop_jobs_finished_total", kind="contacts.upsert", status="succeeded")
    failed = value("bellhop_jobs_finished_total", kind="contacts.upsert", status="failed")

    api.contact(email="ada@example.com", external_id="1")
    for _ in range(2):
        api.post("contacts", {"external_id": "2", "email": "ada@example.com"}, key=KEY)
    api.apply()

    assert value("bellhop_jobs_accepted_total", kind="contacts.upsert") == accepted + 2
    assert value("bellhop_jobs_finished_total", kind="contacts.upsert", status="succeeded") == succeeded + 1
    assert value("bellhop_jobs_finished_total", kind="contacts.upsert", status="failed") == failed + 1


def test_bells_are_counted(api: Api) -> None:
    before = value("bellhop_bells_total", outcome="rung")

    bells.ring("writes", api.workspace_id)
    bells.flush(20)

    assert value("bellhop_bells_total", outcome="rung") == before + 1


@pytest.mark.parametrize(("status", "reason"), [(410, "gone"), (500, "failures")])
def test_stops_of_endpoints_are_counted(api: Api, status: int, reason: str) -> None:
    before = value("bellhop_endpoints_stopped_total", reason=reason)
    endpoint = Endpoint.get_by_id(api.endpoint())
    answer = answered(status)

    with transaction():
        stops.count_outcomes(endpoint, [(answer, True)] * 50)

    assert endpoint.state == "stopped"
    assert value("bellhop_endpoints_stopped_total", reason=reason) == before + 1


def test_every_figure_says_what_it_is() -> None:
    families = list(REGISTRY.collect())

    assert len(families) > 10
    assert [family.name for family in families if not family.documentation] == []
    assert metrics.REQUESTS in REGISTRY._collector_to_names
