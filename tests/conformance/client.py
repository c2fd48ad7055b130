"""The quick start of docs/integrate by a client that openapi-python-client made, run with the Python that has it."""

from __future__ import annotations

import os
import time
from uuid import uuid4

from bellhop_client import AuthenticatedClient
from bellhop_client.api.contacts import list_contacts, upsert_contact
from bellhop_client.api.deliveries import list_deliveries, show_delivery
from bellhop_client.api.endpoints import create_endpoint
from bellhop_client.api.jobs import show_job
from bellhop_client.api.me import show_me
from bellhop_client.models import (
    ContactUpsert,
    EndpointCreate,
    EndpointCreateEventsItem,
    ListDeliveriesStatus,
    ValidationProblem,
)

client = AuthenticatedClient(os.environ["BELLHOP"], os.environ["TOKEN"])

# Who am I?
me = show_me.sync(client=client)
workspace = me.data.workspace.id
assert me.data.token.restrictions is None

# An endpoint, whose secret is shown once
wanted = EndpointCreate(address=os.environ["RECEIVER"], events=[EndpointCreateEventsItem.CONTACT_CREATED])
made = create_endpoint.sync_detailed(workspace, client=client, body=wanted, prefer="wait=10")
assert made.status_code == 201
assert made.parsed.secret.startswith("whsec_")
endpoint = made.parsed.data

# A contact, waited for
key = str(uuid4())
ada = ContactUpsert(email="ada@example.com", first_name="Ada", tags=["vip"])
first = upsert_contact.sync_detailed(workspace, client=client, body=ada, prefer="wait=10", idempotency_key=key)
assert first.status_code == 201
assert first.parsed.data.tags == ["vip"]

# The same again, as if the answer had been lost
again = upsert_contact.sync_detailed(workspace, client=client, body=ada, prefer="wait=10", idempotency_key=key)
assert again.headers["Idempotent-Replayed"] == "true"
assert again.parsed.data.id == first.parsed.data.id

# Another, without waiting
accepted = upsert_contact.sync_detailed(workspace, client=client, body=ContactUpsert(email="eve@example.com"))
assert accepted.status_code == 202
deadline = time.monotonic() + 20
while (job := show_job.sync(workspace, accepted.parsed.data.id, client=client).data).finished_at is None:
    assert time.monotonic() < deadline
    time.sleep(0.05)
assert (job.status, job.problem) == ("succeeded", None)
assert job.resource.type_ == "contact"

# The list, page by page
page = list_contacts.sync(workspace, client=client, limit=1)
assert (page.data[0].id, page.meta.has_more) == (job.resource.id, True)
page = list_contacts.sync(workspace, client=client, limit=1, cursor=page.meta.next_cursor)
assert (page.data[0].id, page.meta.has_more, page.meta.next_cursor) == (first.parsed.data.id, False, None)

# What was delivered
deadline = time.monotonic() + 20
while len(delivered := list_deliveries.sync(workspace, client=client, status=ListDeliveriesStatus.DELIVERED).data) < 2:
    assert time.monotonic() < deadline
    time.sleep(0.05)
shown = show_delivery.sync(workspace, delivered[0].id, client=client).data
assert (shown.endpoint_id, shown.kind, shown.attempts_log[0].status) == (endpoint.id, "contact.created", 200)

# A refusal
refused = upsert_contact.sync_detailed(workspace, client=client, body=ContactUpsert(email="no address"))
assert refused.status_code == 422
assert isinstance(refused.parsed, ValidationProblem)
assert refused.parsed.errors[0].pointer == "/email"
assert refused.parsed.trace_id == refused.headers["X-Request-Id"]
