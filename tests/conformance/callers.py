"""Requests to the running service."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

from tests.conformance.conftest import Site


def call(site: Site, method: str, path: str, body: Any = None, prefer: str = "wait=20") -> Any:
    """The response. Raises HTTPError on a problem."""
    headers = {"Authorization": f"Bearer {site.token}", "Content-Type": "application/json", "Prefer": prefer}
    data = None if body is None else json.dumps(body).encode()
    address = f"{site.base_url}/api/v1/workspaces/{site.workspace}/{path}"
    with urlopen(Request(address, data, headers, method=method), timeout=30) as answer:
        return json.load(answer)


def make_contacts(site: Site, emails: list[str]) -> None:
    """Returns when all exist: writes take effect in their order, so it waits for the last alone."""
    for email in emails[:-1]:
        call(site, "POST", "contacts", {"email": email}, prefer="respond-async")
    call(site, "POST", "contacts", {"email": emails[-1]})
