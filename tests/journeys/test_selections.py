"""A change of many conversations changes each once, although the workers that make it are killed in the middle."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
import requests

from tests.doors.streams import cookie
from tests.journeys.audit import rows
from tests.journeys.faults import kill
from tests.journeys.histories import fill
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

# Of these, some have the label already, and some are closed before the change reaches them.
MANY, LABELLED, CLOSED = 3_000, 400, 200


class Inbox:
    """The inbox of a member of a new workspace that has MANY conversations, the newest first."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.workspace_id = stack.command("workspace", "create", "Shop")["workspace"]["id"]
        fill(stack, self.workspace_id, MANY, LABELLED)
        self.address = f"{stack.base_url}/workspaces/{self.workspace_id}/inbox"
        self.browser = requests.Session()
        for each in cookie(stack, self.workspace_id, f"agent@{self.workspace_id[3:]}.example").split("; "):
            name, _, value = each.partition("=")
            self.browser.cookies.set(name, value, domain=urlsplit(stack.base_url).hostname)

    def change_all(self, **fields: str) -> None:
        """Changes all open conversations, as its page does."""
        page = self.browser.get(self.address, timeout=20).text
        found = re.search(r'csrf_token" value="([^"]+)', page)
        assert found
        sent = {"csrf_token": found[1], "all": "true", **fields}
        answer = self.browser.post(f"{self.address}/selections", sent, allow_redirects=False, timeout=20)
        assert answer.status_code == 303, answer.text

    def query(self, what: str) -> list[tuple[object, ...]]:
        return rows(self.stack, f"SELECT {what} WHERE workspace_id = %s", self.workspace_id)

    def done(self) -> int:
        """How many conversations the change has worked."""
        [(number,)] = self.query("changed + unchanged + refused + passed_over FROM selections")
        return int(str(number))

    def counts(self) -> dict[str, int]:
        answer = self.browser.get(f"{self.address}/counts", timeout=20).json()
        return {"all": answer["all"], "done": answer["labels"].get("done", 0)}


@pytest.mark.nightly
def test_every_conversation_is_changed_once(stack: Stack, report: Callable[[object], None]) -> None:
    inbox = Inbox(stack)
    inbox.change_all(do="label", label="done")
    killed_at = []
    for part in (1, 2):
        wait_until(lambda part=part: inbox.done() >= MANY * part // 4, 120, "some are changed")
        kill(stack, "writes")
        killed_at.append(inbox.done())
        if part == 1:
            # The last of the list.
            last = "SELECT id FROM conversations WHERE workspace_id = %s ORDER BY created_at LIMIT %s"
            close = f"UPDATE conversations SET status = 'closed' WHERE id IN ({last}) RETURNING id"
            assert len(rows(stack, close, inbox.workspace_id, CLOSED)) == CLOSED
    wait_until(lambda: finished(inbox), 240, "the change has ended")

    report(f"{MANY:,} conversations, workers killed at {killed_at[0]:,} and {killed_at[1]:,}")
    assert all(0 < number < MANY for number in killed_at)
    changed = MANY - LABELLED - CLOSED
    account = inbox.query("total, changed, unchanged, refused, passed_over FROM selections")
    assert account == [(MANY, changed, LABELLED, 0, CLOSED)]
    assert inbox.query("count(*), count(DISTINCT contact_id) FROM events") == [(changed, changed)]
    assert inbox.query("count(*) FILTER (WHERE labels = ARRAY['done']), count(*) FROM conversations") == [
        (changed + LABELLED, MANY)
    ]
    assert inbox.counts() == {"all": MANY - CLOSED, "done": MANY - CLOSED}
    left = (
        "SELECT count(*) FROM selection_parts JOIN selections ON id = selection_id WHERE selections.workspace_id = %s"
    )
    assert rows(stack, left, inbox.workspace_id) == [(0,)]
    assert inbox.query("kind, status FROM jobs") == [("selections.apply", "succeeded")]


def finished(inbox: Inbox) -> bool:
    return inbox.query("finished_at IS NOT NULL FROM selections") == [(True,)]
