"""The workspace's endpoints as options of a select, and as checkboxes."""

from __future__ import annotations

from collections.abc import Sequence

from app.models.endpoints import Endpoint
from app.web import filters
from app.web.access import workspace_id

# Above these numbers, forms ask for identifiers instead: a list of a thousand is slow, and hard to read.
MOST = 50
MOST_TICKED = 100
LONGEST_LABEL = 60


def offered(first_label: str, chosen: str | None) -> list[tuple[str, str]] | None:
    """Returns the endpoints, and `chosen` even if deleted, as options; None if more than MOST."""
    return filters.offered(_newest(MOST + 1), MOST, first_label, chosen)


def ticked(chosen: Sequence[str]) -> list[tuple[str, str, bool]] | None:
    """Returns (value, label, is ticked), ticked endpoints first; None if more than MOST_TICKED."""
    found = dict(_newest(MOST_TICKED + 1))
    if len(found) > MOST_TICKED:
        return None
    boxes = [(id, found.get(id, id), True) for id in dict.fromkeys(chosen)]  # a deleted endpoint has no label
    return [*boxes, *((id, label, False) for id, label in found.items() if id not in chosen)]


def _newest(limit: int) -> list[tuple[str, str]]:
    found = Endpoint.in_workspace(workspace_id()).select(Endpoint.id, Endpoint.address, Endpoint.state)
    return [(endpoint.id, _label(endpoint)) for endpoint in found.order_by(Endpoint.id.desc()).limit(limit)]


def _label(endpoint: Endpoint) -> str:
    address = endpoint.address.removeprefix("https://")
    short = address if len(address) <= LONGEST_LABEL else address[: LONGEST_LABEL - 1] + "…"
    return short if endpoint.state == "active" else f"{short} (stopped)"
