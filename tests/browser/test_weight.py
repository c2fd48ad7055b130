"""What a page weighs that is opened for the first time, all style and script included."""

from __future__ import annotations

import gzip
from collections.abc import Callable

from playwright.sync_api import Response, expect

from tests.browser import seeds
from tests.browser.conftest import NewBrowser, Visit
from tests.browser.services import Service, Workspace

MOST_BYTES = 60_000
ROWS = 50  # of a list
TEXT = "Thank you. Could you tell me when order {} is going to arrive, and whether I may still change the address?"


def weight(response: Response) -> int:
    """The bytes of its body, compressed: as it was sent, or as a proxy sends a page."""
    if response.headers.get("content-encoding") == "gzip":
        return response.request.sizes()["responseBodySize"]
    assert response.request.resource_type == "document"
    return len(gzip.compress(response.body()))


def test_the_inbox_with_a_conversation_is_at_most_60_kilobytes(
    service: Service, visit: Visit, fresh: NewBrowser, workspace: Workspace, report: Callable[[str], None]
) -> None:
    caller = workspace.caller()
    channel = seeds.make_web_chat(caller, "Flowers")
    contact = seeds.make_contact(caller, "Ada Lovelace")
    said = [("contact" if n % 2 else "member", TEXT.format(n), "received" if n % 2 else "read") for n in range(ROWS)]
    for number in range(ROWS):
        seeds.make_conversation(service, workspace, channel, contact, number + 5, said if number == 0 else said[:2])
    signed_in = visit(workspace.email("agent")).context.storage_state()
    context = fresh(storage_state=signed_in, base_url=service.base_url)
    page = context.new_page()
    responses: list[Response] = []
    page.on("response", lambda response: responses.append(response))

    [(talk,)] = service.query(
        "SELECT id FROM conversations WHERE workspace_id = %s ORDER BY last_message_at DESC LIMIT 1", workspace.id
    )
    page.goto(workspace.path(f"inbox/{talk}"), wait_until="load")

    expect(page.locator("#rows > li")).to_have_count(ROWS)
    loaded = [each for each in responses if each.request.resource_type in ("document", "stylesheet", "script")]
    assert len(loaded) > 5
    parts = {each.url.rpartition("/")[2].partition("?")[0]: weight(each) for each in loaded}
    report(f"{sum(parts.values()):,} bytes in {len(parts)} parts, of these the page {parts[talk]:,}")
    assert sum(parts.values()) <= MOST_BYTES, parts
