"""Problem documents as components: schemas, and one response for each status."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from app.api.openapi.components import LIMITS, header_references
from app.errors import Fault, Invalid
from app.problems import PROBLEMS, Problem, problem_document, problem_of_error

_EXAMPLE_ID = "5f0c6f1d2b7e4a8f9d3c1b2a4e6f8071"
_INVALID = Invalid(Fault("/contact_id", "Missing data for required field."))
# Members of a conflict. Each is present only where it applies.
_FACTS = {
    "conflicting_field": "The identifier that is taken, or that has a different value on the contact.",
    "conflicting_contact_id": "The contact that has this identifier, or a different one.",
    "conflicting_sale_id": "The sale that already has the reference.",
    "conflicting_saved_reply_id": "The saved reply that has the shortcut.",
    "code": "Why an action of a macro was refused, or a template could not be rendered.",
    "pointer": "That action: RFC 6901 pointer into the macro.",
    "conflicting_automation_id": "The published automation that starts runs for this segment.",
    "conflicting_broadcast_id": "The scheduled broadcast that is for this segment.",
    "conflicting_run_id": "The run that keeps the contact out of the automation.",
}

# Headers of the response to a request that waits for its job, if the job fails.
_OF_WAITING = ["Preference-Applied", "Idempotent-Replayed"]
_OWN_HEADERS = {
    401: ["WWW-Authenticate"],
    404: _OF_WAITING,
    405: ["Allow"],
    409: _OF_WAITING,
    422: _OF_WAITING,
    429: ["Retry-After"],
    500: _OF_WAITING,
    503: ["Retry-After"],
}


def response_name(status: int) -> str:
    """Returns the component of a problem response: `NotFound` for 404."""
    return HTTPStatus(status).phrase.title().replace(" ", "").replace("-", "")


def problem_responses(base_url: str) -> dict[str, dict[str, Any]]:
    """Returns the response for each status of problems, by component name."""
    statuses = sorted({problem.status for problem in PROBLEMS.values()})
    return {response_name(status): _problem_response(status, base_url) for status in statuses}


def problem_schemas() -> dict[str, dict[str, Any]]:
    """Returns the schemas of problem documents, by component name."""
    slugs = ", ".join(f"`{slug}`" for slug in PROBLEMS)
    text = {"type": "string"}
    members = {
        "type": text | {"format": "uri", "description": f"`<base_url>/problems/<slug>`; the slugs are {slugs}."},
        "title": text | {"description": "Short summary."},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": text
        | {"description": "What is wrong, to show to people: of several faults the first, and how many more."},
        "traceId": text | {"description": "Keep it for support; equal to X-Request-Id."},
    }
    place = "RFC 6901 pointer into the body, or `/` and the name of a query parameter or header."
    errors = {"type": "array", "items": {"$ref": "#/components/schemas/Fault"}}
    further = {"errors": errors} | {name: text | {"description": what} for name, what in _FACTS.items()}
    return {
        "Problem": {
            "type": "object",
            "description": "A problem document (RFC 9457). Some problems have further members.",
            "required": list(members),
            "properties": members | further,
        },
        "ValidationProblem": {
            "allOf": [
                {"$ref": "#/components/schemas/Problem"},
                {"type": "object", "properties": {"errors": errors}},
            ]
        },
        "Fault": {
            "type": "object",
            "required": ["pointer", "detail"],
            "properties": {"pointer": text | {"description": place}, "detail": text},
        },
    }


def _problem_response(status: int, base_url: str) -> dict[str, Any]:
    problems = [problem for problem in PROBLEMS.values() if problem.status == status]
    schema = "ValidationProblem" if status == 422 else "Problem"
    examples = {problem.slug: {"value": _example(problem, base_url)} for problem in problems}
    limits = () if status == 401 else LIMITS  # requests without a valid token are not counted
    return {
        "description": " or ".join(f"{problem.title} (`{problem.slug}`)" for problem in problems),
        "headers": header_references("X-Request-Id", *_OWN_HEADERS.get(status, []), *limits),
        "content": {
            "application/problem+json": {"schema": {"$ref": f"#/components/schemas/{schema}"}, "examples": examples}
        },
    }


def _example(problem: Problem, base_url: str) -> dict[str, Any]:
    if problem.slug == "validation-failed":
        return problem_of_error(_INVALID, _EXAMPLE_ID, base_url=base_url)
    return problem_document(problem.slug, None, _EXAMPLE_ID, base_url=base_url)
