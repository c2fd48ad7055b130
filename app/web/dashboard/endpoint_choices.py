"""Choices among a workspace's endpoints, for forms."""

from __future__ import annotations

from app.models.endpoints import Endpoint
from app.web.access import workspace_id

# With more, a form asks for the identifier instead: a list of a thousand is neither small nor quick to read.
MOST = 50
LONGEST_LABEL = 60

Choices = list[tuple[str, str]]


def offered(first_label: str, chosen: str | None) -> Choices | None:
    """Values and labels for a select, with the one that is chosen; None if there are more than a select can offer."""
    columns = (Endpoint.id, Endpoint.address, Endpoint.state)
    found = list(Endpoint.in_workspace(workspace_id()).select(*columns).order_by(Endpoint.id.desc()).limit(MOST + 1))
    if len(found) > MOST:
        return None
    choices = [("", first_label), *((endpoint.id, _label(endpoint)) for endpoint in found)]
    if chosen and chosen not in dict(choices):
        choices.append((chosen, chosen))  # a deleted one
    return choices


def _label(endpoint: Endpoint) -> str:
    address = endpoint.address.removeprefix("https://")
    short = address if len(address) <= LONGEST_LABEL else address[: LONGEST_LABEL - 1] + "…"
    return short if endpoint.state == "active" else f"{short} (stopped)"
