"""One session opens pages of 500 steps over 36 connections, each with one more cookie, and imports entangled files."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import requests

from tests.app.domain.automations.imports.flow_samples import entangled
from tests.doors.services import service, tenant
from tests.doors.streams import cookie
from tests.doors.victims import attacking, victim

Tell = Callable[[str], None]
CONNECTIONS, IMPORTS, SECONDS = 36, 20, 10
MARK = {"kind": "add_tag", "tag": "new"}
STEPS = [{"id": f"mark{number}", **MARK} for number in range(500)]


def measure(tell: Tell) -> None:
    with service({"web": 1, "writes": 1, "scheduler": 1}, {"RATE_LIMIT": "0"}) as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim").caller()
        made = attacker.caller().apply("POST", "automations", {"name": "Long", "definition": {"steps": STEPS}})
        session = cookie(stack, attacker.workspace_id, "attacker@example.com", "owner")
        pages = f"{stack.base_url}/workspaces/{attacker.workspace_id}/automations"
        form = requests.get(f"{pages}/import", headers={"Cookie": session}, timeout=20)
        session = "; ".join(f"{name}={value}" for name, value in form.cookies.items())  # with the secret of its form
        token = re.search(r'name="csrf_token" value="([^"]+)"', form.text)
        assert token, form.text
        fields = {"csrf_token": token[1], "text": json.dumps(entangled(740))}
        for name, number, ask in (
            ("open pages of 500 steps", CONNECTIONS, partial(requests.get, f"{pages}/{made.data['id']}/edit")),
            ("import entangled files", IMPORTS, partial(requests.post, f"{pages}/import", data=fields)),
        ):
            statuses = Counter[Any]()
            callers = [{"Cookie": f"{session}; more={each}", "Accept": "text/html"} for each in range(number)]
            acts = [partial(call, ask, each, statuses) for each in callers]
            with attacking(acts), victim(partial(other.get, "contacts")) as felt:
                time.sleep(SECONDS)
            tell(f"{number} connections of one session {name}: {dict(statuses)}; reads of another: {felt}")
            felt.check()


def call(
    ask: Callable[..., requests.Response],
    headers: Mapping[str, str],
    statuses: Counter[Any],
    is_over: threading.Event,
) -> None:
    """Asks again and again, and waits for a tenth of a second when it may not."""
    while not is_over.is_set():
        with suppress(requests.RequestException):
            status = ask(headers=headers, timeout=70).status_code
            statuses[status] += 1
            is_over.wait(0.1 if status == 429 else 0)
