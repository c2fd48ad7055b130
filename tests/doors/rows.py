"""A workspace with a million contacts, looked at through the API and on the page: by tag, by text, page by page."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median, quantiles

import requests

from tests.doors.services import service, tenant
from tests.doors.streams import cookie
from tests.journeys.audit import rows

CONTACTS, SEGMENT = 1_000_000, 16_000
TIMES = 20
MEDIAN_SECONDS, P95_SECONDS = 0.100, 0.250
ASKED = {
    "all": "",
    "a tag that all have": "tag=all",
    "a tag of every tenth": "tag=some",
    "a tag of one in a hundred thousand": "tag=rare",
    "a text that all have": "q=example",
    "a text of one in a hundred": "q=ada42",
    "a text of one": "q=person777777",
    "a text of none": "q=nobody-has-this",
    "a tag and a text that all have": "tag=all&q=example",
}


def measure(tell: Callable[[str], None]) -> None:
    with service({"web": 1, "writes": 1, "scheduler": 1}) as stack:
        shop = tenant(stack, "Shop")
        rows(stack, _CONTACTS, shop.workspace_id, SEGMENT, CONTACTS)
        rows(stack, _SEGMENTS, shop.workspace_id, SEGMENT, CONTACTS, SEGMENT)
        signed_in = {"Cookie": cookie(stack, shop.workspace_id, "member@example.com"), "Accept": "text/html"}
        with requests.Session() as session:
            late = []
            for where, base, headers in (
                ("API ", f"{stack.base_url}/api/v1/workspaces/{shop.workspace_id}/contacts", _bearer(shop.token)),
                ("page", f"{stack.base_url}/workspaces/{shop.workspace_id}/contacts", signed_in),
            ):
                for name, query in ASKED.items():
                    seconds = []
                    for _ in range(TIMES):
                        began = time.monotonic()
                        answer = session.get(f"{base}?{query}", headers=headers, timeout=60)
                        seconds.append(time.monotonic() - began)
                    assert answer.ok and (("con_0" in answer.text) == ("nobody" not in query)), name
                    half, most = median(seconds), quantiles(seconds, n=20)[18]
                    tell(f"{where} {name}: median {half * 1000:.0f} ms, 95 % {most * 1000:.0f} ms")
                    if half > MEDIAN_SECONDS or most > P95_SECONDS:
                        late.append(f"{where} {name}")
        assert not late, late


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


_CONTACTS = """
    INSERT INTO contacts (id, workspace_id, external_id, email, first_name, tags, custom_fields, opted_out, segment,
        created_at, updated_at)
    SELECT 'con_' || lpad(number::text, 26, '0'), %s, 'c-' || number, 'person' || number || '@example.com',
        'Ada' || number %% 100,
        ARRAY['all'] || CASE WHEN number %% 10 = 0 THEN ARRAY['some'] ELSE '{}' END
            || CASE WHEN number %% 100000 = 7 THEN ARRAY['rare'] ELSE '{}' END,
        '{}', false, number / %s, now(), now()
    FROM generate_series(1, %s) AS number RETURNING 1
"""
_SEGMENTS = """
    INSERT INTO contact_segments (workspace_id, number, from_id)
    SELECT %s, number, 'con_' || lpad((number * %s)::text, 26, '0') FROM generate_series(1, %s / %s) AS number
    RETURNING 1
"""
