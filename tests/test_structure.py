"""What holds for all of the code: routes, kinds, processes, the schema."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import models, process_registry
from app.api.openapi import examples
from app.api.openapi.problems import response_name
from app.database import rows
from app.domain.jobs.jobs import LONG
from app.domain.people import tokens
from app.domain.verbs import VERBS
from app.domain.webhooks import catalogue
from app.models.base import BaseModel, MailModel, OwnedModel
from app.models.controlled_batches import ControlledBatch
from tests import schema
from tests.conftest import Servers

ROOT = Path(__file__).parent.parent
for module in pkgutil.iter_modules(models.__path__, "app.models."):
    importlib.import_module(module.name)
BASES = {BaseModel, ControlledBatch, MailModel, OwnedModel}
MODELS = sorted({model for base in BASES for model in base.__subclasses__()} - BASES, key=lambda model: model.__name__)
RESTRICTIONS = {*tokens.RESTRICTIONS, tokens.UNRESTRICTED}
# Kinds whose verbs have another name, or stand elsewhere.
NAMED_OTHERWISE = {
    *("contacts.import", "contacts.delete", "contacts.merge", "channels.delete", "members.update", "members.give_back"),
    *("replays.create", "replays.continue", "broadcasts.continue", "automations.move_runs", "automations.start_list"),
    *("deliveries.discard", "jobs.discard", "jobs.replay_many", "jobs.discard_many"),
    *("conversations.update", "workspaces.update"),
}


def operations(app: Flask) -> set[tuple[str, str]]:
    """Method and path of everything under /api/v1."""
    return {
        (method.lower(), re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/v1/")
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }


def test_every_route_of_the_api_declares_who_may_use_it(app: Flask) -> None:
    undeclared = [
        rule.rule
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/v1/") and not hasattr(app.view_functions[rule.endpoint], "restriction")
    ]

    assert undeclared == ["/api/v1/openapi.json"]


def test_every_restriction_of_a_route_is_one_that_a_token_can_have(app: Flask) -> None:
    used = {view.restriction for view in app.view_functions.values() if hasattr(view, "restriction")}

    assert used - {None} <= RESTRICTIONS


def test_every_kind_of_job_has_a_verb_of_its_name_and_a_restriction() -> None:
    for name in VERBS.keys() - NAMED_OTHERWISE:
        noun, verb = name.split(".")
        assert VERBS[name].call.__name__ == verb, name
        assert VERBS[name].call.__module__.endswith(f".{noun}"), name
        assert VERBS[name].restriction in RESTRICTIONS, name


def test_no_two_kinds_of_job_have_the_same_verb() -> None:
    assert len({verb.call for verb in VERBS.values()}) == len(VERBS)


def test_a_verb_that_does_its_work_in_parts_has_no_other_job_claimed_with_it() -> None:
    in_parts = {name for name, verb in VERBS.items() if NoneType in get_args(get_type_hints(verb.call)["return"])}

    assert "contacts.import" in in_parts
    assert in_parts <= set(LONG) <= VERBS.keys()


def test_every_package_is_locked_with_hashes() -> None:
    for wanted in (*ROOT.glob("requirements*.in"), *ROOT.glob("tests/*/requirements.in")):
        locked = wanted.with_suffix(".txt").read_text()
        for name in re.findall(r"^(\w[\w-]*)", wanted.read_text(), re.MULTILINE):
            assert re.search(rf"^{name}(\[.*\])?==", locked, re.MULTILINE | re.IGNORECASE), (wanted, name)
        for pin in re.split(r"^(?=[\w])", locked, flags=re.MULTILINE)[1:]:
            assert "--hash=sha256:" in pin, (wanted, pin)


def test_the_process_types_are_those_of_the_procfile() -> None:
    types = [line.partition(":")[0] for line in (ROOT / "Procfile").read_text().splitlines()]

    assert tuple(types) == ("release", *process_registry.TYPES)


def test_the_small_procfile_differs_by_its_worker_alone() -> None:
    usual, small = (set((ROOT / name).read_text().splitlines()) for name in ("Procfile", "Procfile.small"))

    assert {line.partition(":")[0] for line in usual & small} == {"release", "web"}
    assert [line.partition(":")[0] for line in small - usual] == ["worker"]


WITHOUT_WORKSPACE = (
    *("attempts", "broadcast_rows", "idempotency_keys", "import_errors", "replay_parts", "replay_rows"),
    "selection_parts",
)
# Times that may be later than Python has any, and workspaces of rows that are found by what they belong to.
UNREAD = {
    *(("channels", "paced_until"), ("channels", "paused_until")),
    *((table, "workspace_id") for table in WITHOUT_WORKSPACE),
}


# What people have in all their workspaces, counts that end within the hour, and what processes keep for themselves.
NOT_OF_A_WORKSPACE = {
    *("workspaces", "accounts", "sessions", "emails", "sign_in_failures", "stored_bytes"),
    *(
        "migrations",
        "migration_steps",
        "leases",
        "billing_periods",
        "usage_progress",
        "queue_minutes",
        "figure_progress",
    ),
    *("inbox_figure_progress", "update_horizons", "updates_forgotten"),
}


def columns_of(table: str) -> dict[str, bool]:
    """Column names, and whether they may be null; generated columns are the database's own."""
    return dict(
        rows(
            "SELECT column_name, is_nullable = 'YES' FROM information_schema.columns"
            " WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER'",
            (table,),
        )
    )


def test_the_migrations_make_what_the_models_describe(servers: Servers) -> None:
    for model in MODELS:
        described = {field.column_name: field.null for field in model._meta.sorted_fields}
        columns = columns_of(model._meta.table_name)
        read = {name: columns[name] for name in columns if (model._meta.table_name, name) not in UNREAD}
        assert read == described, model


def test_every_table_of_workspaces_names_them(empty: None) -> None:
    tables = {
        name
        for (name,) in rows(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
            " AND relnamespace = 'public'::regnamespace"
        )
    }

    assert {table for table in tables if "workspace_id" not in columns_of(table)} == NOT_OF_A_WORKSPACE


def test_the_migrations_make_the_schema_that_is_written_down(empty: None) -> None:
    """`RECORD_SCHEMA=1 python -m pytest tests/test_structure.py -k written_down` writes it down anew."""
    found = schema.described()
    if os.environ.get("RECORD_SCHEMA"):
        schema.FILE.write_text(found)

    assert found == schema.FILE.read_text()


# The document


@pytest.fixture(scope="module")
def document(client: FlaskClient) -> dict[str, Any]:
    return dict(client.get("/api/v1/openapi.json").json)


def test_the_document_needs_no_token(client: FlaskClient) -> None:
    assert client.get("/api/v1/openapi.json").status_code == 200


def test_the_document_has_every_operation(app: Flask, document: dict[str, Any]) -> None:
    described = {
        (method, path) for path, item in document["paths"].items() for method in item if method != "parameters"
    }

    short = {
        (method, path.replace("/workspaces/{workspace}", "", 1))
        for method, path in described
        if "/workspaces/{workspace}/" in path
    }
    assert described | short == operations(app) - {("get", "/api/v1/openapi.json")}
    assert described & short == set()


def test_the_document_explains_the_short_form_in_words(document: dict[str, Any]) -> None:
    assert "`POST /api/v1/contacts`" in document["info"]["description"]


def described_operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


def test_every_operation_has_an_identifier_of_its_own(document: dict[str, Any]) -> None:
    identifiers = [operation["operationId"] for operation in described_operations(document).values()]

    assert len(identifiers) == len(set(identifiers))


def test_every_operation_describes_its_refusals(document: dict[str, Any]) -> None:
    lacking = {
        name: {"401", "422", "429", "500", "503"} - set(operation["responses"])
        for name, operation in described_operations(document).items()
    }

    assert {name: statuses for name, statuses in lacking.items() if statuses} == {}


def test_every_write_describes_202_and_its_headers(document: dict[str, Any]) -> None:
    writes = {
        name: operation
        for name, operation in described_operations(document).items()
        if not name.startswith("get ")
        and not name.endswith(("/simulate", "/uploads", "/typing", "/presence", "/segments/count"))
    }

    assert len(writes) >= 8
    for operation in writes.values():
        assert {"400", "404", "409", "413", "415"} <= set(operation["responses"])
        assert {"Location", "Idempotent-Replayed", "X-Request-Id"} <= set(operation["responses"]["202"]["headers"])
        named = {parameter.get("$ref", "").rpartition("/")[2] for parameter in operation["parameters"]}
        assert {"Prefer", "Idempotency-Key"} <= named


def test_every_operation_says_what_it_does_and_who_may(app: Flask, document: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    restrictions = {
        view.__name__: view.restriction for view in app.view_functions.values() if hasattr(view, "restriction")
    }

    for name, operation in described_operations(document).items():
        assert operation["summary"], name
        assert len(operation["tags"]) == 1, name
        assert set(operation["tags"]) <= tags, name
        assert operation["x-restriction"] == restrictions[operation["operationId"]], name
        assert "token" in operation["description"], name


def test_every_body_has_an_example(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    for name, operation in described_operations(document).items():
        for body in (operation.get("requestBody", {}), *operation["responses"].values()):
            for kind, content in body.get("content", {}).items():
                assert {"example", "examples"} & content.keys(), (name, kind, lacking(content["schema"], schemas))


def lacking(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Which field has no example, so that none could be made of the whole."""
    try:
        return str(examples.of_schema(schema, schemas))
    except examples.Lacking as error:
        return str(error)


def test_every_parameter_and_header_is_described(document: dict[str, Any]) -> None:
    shared = document["components"]
    parameters = [parameter for item in document["paths"].values() for parameter in item.get("parameters", ())]

    assert [parameter["name"] for parameter in parameters if not parameter.get("description")] == []
    assert [name for name, header in shared["headers"].items() if not header["description"]] == []
    assert [name for name, parameter in shared["parameters"].items() if not parameter["description"]] == []


def test_the_problem_of_a_job_describes_the_headers_of_waiting(document: dict[str, Any]) -> None:
    for name in ("NotFound", "Conflict", response_name(422), "InternalServerError"):
        headers = document["components"]["responses"][name]["headers"]
        assert {"Preference-Applied", "Idempotent-Replayed"} <= headers.keys(), name


def test_the_document_tells_what_an_endpoint_is_sent(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    assert list(document["webhooks"]) == list(catalogue.EVENT_KINDS)
    for kind, webhook in document["webhooks"].items():
        sent = webhook["post"]
        content = sent["requestBody"]["content"]["application/json"]
        schema = schemas[content["schema"]["$ref"].rpartition("/")[2]]
        assert {header["name"] for header in sent["parameters"]} == {"X-Service-Signature", "X-Service-Delivery"}
        assert set(schema["required"]) == content["example"].keys()
        assert schema["properties"]["kind"]["const"] == kind == content["example"]["kind"]
    assert schemas["WebhookBody"]["discriminator"]["mapping"].keys() == catalogue.EVENT_KINDS.keys()


def inside(value: Any) -> list[dict[str, Any]]:
    """Every object in the document."""
    if isinstance(value, dict):
        return [value, *(found for inner in value.values() for found in inside(inner))]
    return [found for inner in value for found in inside(inner)] if isinstance(value, list) else []


def test_no_response_is_closed(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    operations = described_operations(document).values()
    of_requests = reachable([operation.get("requestBody") for operation in operations], schemas)
    of_responses = reachable([operation["responses"] for operation in operations], schemas)
    closed = {f"#/components/schemas/{name}" for name, schema in schemas.items() if "additionalProperties" in schema}

    assert closed <= of_requests - of_responses
    for name in ("Job", "Delivery", "Endpoint", "Booking", "Sweep"):
        assert [part for part in inside(schemas[name]) if "enum" in part] == []


def test_what_may_be_null_is_written_as_3_1_has_it(document: dict[str, Any]) -> None:
    assert [part for part in inside(document) if "nullable" in part] == []
    assert [part for part in inside(document) if "\x00" in str(part.get("pattern"))] == []


def test_a_job_is_told_from_a_resource_by_a_constant(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    assert schemas["Job"]["properties"]["object"]["const"] == "job"
    assert "object" in schemas["Job"]["required"]
    assert [name for name, schema in schemas.items() if "object" in schema.get("properties", {})] == ["Job"]


def test_problems_have_their_further_members(document: dict[str, Any]) -> None:
    problem = document["components"]["schemas"]["Problem"]

    assert {"errors", "conflicting_field", "conflicting_contact_id", "conflicting_sale_id"} <= set(
        problem["properties"]
    ) - set(problem["required"])


def test_a_custom_field_has_its_types(document: dict[str, Any]) -> None:
    values = document["components"]["schemas"]["Contact"]["properties"]["custom_fields"]["additionalProperties"]

    assert values == {"type": ["string", "number", "boolean", "null"]}


def test_every_link_leads_to_an_operation_with_these_parameters(document: dict[str, Any]) -> None:
    described = described_operations(document)
    paths = {operation["operationId"]: name.partition(" ")[2] for name, operation in described.items()}
    links = [
        link
        for operation in described.values()
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    ]

    assert len(links) > 10
    for link in links:
        assert set(re.findall(r"\{(\w+)\}", paths[link["operationId"]])) == link["parameters"].keys()


def reachable(value: Any, schemas: dict[str, Any]) -> set[str]:
    """The schemas that the value refers to, directly or through others."""
    found: set[str] = set()
    new = references(value)
    while new:
        found |= new
        new = references([schemas.get(name.rpartition("/")[2]) for name in new]) - found
    return found


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    broken = []
    for reference in references(document):
        place: Any = document
        for part in reference.removeprefix("#/").split("/"):
            place = place.get(part, {})
        broken += [] if place else [reference]

    assert broken == []


def test_every_schema_has_one_name(document: dict[str, Any]) -> None:
    assert [name for name in document["components"]["schemas"] if name[-1].isdigit()] == []
