"""A broadcast reaches each contact once, whatever happens to processes and providers, and nobody waits behind it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.journeys.audit import rows
from tests.journeys.conversing import Providers, open_channels
from tests.journeys.faults import empty_redis, kill, let_pass, restart_postgres
from tests.journeys.shops import Shop, open_shop
from tests.journeys.talking import kill_each, trouble
from tests.journeys.waiting import wait_until
from tests.providers.base import Trouble
from tests.stack import posts
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

EVERYBODY = {"field": "contact.created_at", "is": "exists"}
# Contacts of the broadcast under faults; half of them on each channel.
RECIPIENTS = int(os.environ.get("RECIPIENTS", "400"))
SETTLE_SECONDS = 240 + RECIPIENTS // 10


def send(shop: Shop, **fields: Any) -> str:
    """Makes a broadcast whose text names its contact; returns its identifier."""
    body = {"name": "Sale", "filter": EVERYBODY, "message": {"text": "sale-{{ contact.id }}"}, **fields}
    return str(shop.caller().apply("POST", "broadcasts", body).data["id"])


def seed(stack: Stack, shop: Shop, providers: Providers, number: int) -> None:
    channels = open_channels(stack, shop, providers)
    posts.post(stack, shop.workspace_id, [channels["telegram"], channels["whatsapp"]], number, each=0)


def state_of(stack: Stack, broadcast_id: str) -> str:
    return str(rows(stack, "SELECT state FROM broadcasts WHERE id = %s", broadcast_id)[0][0])


def is_done(stack: Stack, broadcast_id: str) -> bool:
    return state_of(stack, broadcast_id) == "done"


def flaws(stack: Stack, shop: Shop, providers: Providers, broadcast_id: str) -> Iterator[str]:
    """What is wrong: each contact has one row and one message, and was sent it once; its end is told once."""
    query = """
        SELECT contacts.id, broadcast_rows.outcome, messages.status
        FROM contacts LEFT JOIN broadcast_rows ON contact_id = contacts.id AND broadcast_id = %s
        LEFT JOIN messages ON messages.id = broadcast_rows.message_id
        WHERE contacts.workspace_id = %s
    """
    taken = Counter(text for texts in _reached(providers).values() for text in texts)
    for contact_id, outcome, status in rows(stack, query, broadcast_id, shop.workspace_id):
        number = taken.pop(f"sale-{contact_id}", 0)
        if outcome != "sent" or status not in ("sent", "unknown"):
            yield f"{contact_id}: {outcome}, {status}"
        elif number not in ({1} if status == "sent" else {0, 1}):
            yield f"{contact_id}: {status}, and taken {number} times"
    if taken:
        yield f"taken, of nobody: {taken}"
    counted = rows(stack, "SELECT count(*) FROM messages WHERE broadcast_id = %s", broadcast_id)
    shown = shop.caller().get(f"broadcasts/{broadcast_id}")
    if shown["sent"] + shown["unknown"] != counted[0][0] or shown["waiting"] or shown["handled"] != shown["count"]:
        yield f"{counted} messages are counted as {shown}"
    told = "SELECT count(*) FROM events WHERE workspace_id = %s AND kind = 'broadcast.finished'"
    if rows(stack, told, shop.workspace_id) != [(1,)]:
        yield f"its end is told {rows(stack, told, shop.workspace_id)} times"


def _reached(providers: Providers) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for sent in list(providers.telegram.bot.sent):
        found.setdefault(str(sent.chat_id), []).append(sent.text or "")
    for message in list(providers.whatsapp.messages.values()):
        found.setdefault(str(message.get("to")), []).append(message["text"]["body"])
    return found


def test_each_contact_gets_it_once_under_all_faults(
    talking: Stack, providers: Providers, webhooks: Receiver, report: Callable[[object], None]
) -> None:
    shop = open_shop(talking, webhooks)
    seed(talking, shop, providers, RECIPIENTS)

    began = time.monotonic()
    broadcast_id = send(shop)
    trouble(providers)
    kill_each(talking)
    empty_redis(talking)
    restart_postgres(talking)
    for _ in range(3):
        kill(talking, "automations")
    talking.processes.wait_ready()
    wait_until(lambda: is_done(talking, broadcast_id), SETTLE_SECONDS, "the broadcast is done")

    shown = shop.caller().get(f"broadcasts/{broadcast_id}")
    report(f"{shown['sent']} sent, {shown['unknown']} unknown, {time.monotonic() - began:.1f} s")
    assert list(flaws(talking, shop, providers, broadcast_id)) == []
    assert shown["count"] == RECIPIENTS


def test_as_many_are_unknown_as_connections_were_cut(talking: Stack, providers: Providers, webhooks: Receiver) -> None:
    shop = open_shop(talking, webhooks)
    seed(talking, shop, providers, 60)
    providers.telegram.happens(Trouble.CUT_AFTER, path="sendMessage", times=3)
    providers.whatsapp.happens(Trouble.CUT_AFTER, path="messages", times=2)

    broadcast_id = send(shop)
    wait_until(lambda: is_done(talking, broadcast_id), 120, "the broadcast is done")

    shown = shop.caller().get(f"broadcasts/{broadcast_id}")
    assert (shown["sent"], shown["unknown"]) == (55, 5)
    assert list(flaws(talking, shop, providers, broadcast_id)) == []


def test_a_canary_waits_and_an_abort_ends_it(talking: Stack, providers: Providers, webhooks: Receiver) -> None:
    shop = open_shop(talking, webhooks)
    seed(talking, shop, providers, 300)

    broadcast_id = send(shop, canary=True, per_second=5)
    wait_until(lambda: sum(map(len, _reached(providers).values())) == 1, 60, "the canary is there")
    let_pass(2)
    assert state_of(talking, broadcast_id) == "canary"
    shop.caller().apply("POST", f"broadcasts/{broadcast_id}/continue")
    wait_until(lambda: sum(map(len, _reached(providers).values())) >= 6, 60, "others are there")
    shop.caller().apply("POST", f"broadcasts/{broadcast_id}/abort")
    let_pass(3)
    reached = sum(map(len, _reached(providers).values()))
    let_pass(2)

    assert 6 <= reached < 300
    assert sum(map(len, _reached(providers).values())) == reached
    assert state_of(talking, broadcast_id) == "aborted"


def test_an_answer_of_the_shop_goes_before_the_broadcast(
    talking: Stack, providers: Providers, webhooks: Receiver, report: Callable[[object], None]
) -> None:
    shop = open_shop(talking, webhooks)
    seed(talking, shop, providers, 1_500)
    broadcast_id = send(shop)
    query = """
        SELECT contact_id FROM conversations WHERE workspace_id = %s AND NOT EXISTS (
            SELECT FROM broadcast_rows row WHERE row.contact_id = conversations.contact_id)
        ORDER BY contact_id DESC LIMIT 1
    """
    wait_until(lambda: len(_reached(providers)) > 50, 60, "the broadcast is under way")
    [(contact_id,)] = rows(talking, query, shop.workspace_id)

    began = time.monotonic()
    shop.caller().apply("POST", "messages", {"contact_id": contact_id, "text": "for you"})
    wait_until(lambda: any("for you" in texts for texts in _reached(providers).values()), 60, "the answer is there")
    seconds = time.monotonic() - began

    report(f"an answer beside a broadcast: {seconds * 1000:.0f} ms")
    assert not is_done(talking, broadcast_id)
    shop.caller().apply("POST", f"broadcasts/{broadcast_id}/abort")
