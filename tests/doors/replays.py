"""While a tenant replays thousands of deliveries, its endpoint stops, is deleted, or gets new secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.doors.services import service
from tests.doors.victims import Victim, victim
from tests.journeys.attempts import check_logs
from tests.journeys.audit import rows, settle
from tests.journeys.copies import make_copies
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.signatures import is_genuine
from tests.stack.stack import Stack

Tell = Callable[[str], None]
Trouble = Callable[[Stack, Shop, Receiver], list[str]]

FAILED, FILTER = 20_000, {"statuses": ["failed"], "kinds": ["contact.created"]}
ROTATIONS = 5


def measure(tell: Tell) -> None:
    """The victim's act: a webhook of its own is sent and has arrived."""
    for name, trouble in {"stops": stop, "is deleted": delete, "gets new secrets": rotate}.items():
        with service() as stack, Receiver(stack.certificates.ca_file.parent) as receiver:
            _suffer(stack, receiver, name, trouble, tell)


def _suffer(stack: Stack, receiver: Receiver, name: str, trouble: Trouble, tell: Tell) -> None:
    shop, other = open_shop(stack, receiver, "Replaying"), open_shop(stack, receiver, "Victim")
    shop.caller().apply("POST", "contacts", {"external_id": "ada"})
    settle(stack, [shop])
    make_copies(stack, shop, "failed", FAILED)
    receiver.clear()
    replay = shop.caller().apply("POST", "webhooks/replays", {"filter": FILTER}).data["id"]
    wait_until(lambda: receiver.counts[shop.hook] > FAILED / 20, 60, "the replay is under way")
    with victim(test(other, receiver), every_seconds=0.1) as living:
        secrets = trouble(stack, shop, receiver)
        wait_until(lambda: state(stack, replay) == "done", 300, "the replay has ended")
        settle(stack, [shop], 300)
    check(stack, shop, receiver, replay, secrets)
    report(stack, replay, receiver, shop, living, name, tell)


def stop(stack: Stack, shop: Shop, receiver: Receiver) -> list[str]:
    """The receiver says 410, so the endpoint stops; later it is enabled again."""
    receiver.answers[shop.hook] = 410
    path = f"webhooks/endpoints/{shop.endpoint_id}"
    wait_until(lambda: shop.caller().get(path)["state"] == "stopped", 60, "the endpoint has stopped")
    receiver.answers[shop.hook] = 200
    shop.caller().apply("POST", f"{path}/enable")
    return [shop.secret]


def delete(stack: Stack, shop: Shop, receiver: Receiver) -> list[str]:
    shop.caller().apply("DELETE", f"webhooks/endpoints/{shop.endpoint_id}")
    return [shop.secret]


def rotate(stack: Stack, shop: Shop, receiver: Receiver) -> list[str]:
    secrets = [shop.secret]
    for number in range(2, 2 + ROTATIONS):
        goal = number * FAILED / 20
        wait_until(lambda goal=goal: receiver.counts[shop.hook] > goal, 60, "the replay goes on")
        answer = shop.caller().apply("POST", f"webhooks/endpoints/{shop.endpoint_id}/rotate-secret")
        secrets.append(answer.document["secret"])
    return secrets


def check(stack: Stack, shop: Shop, receiver: Receiver, replay: str, secrets: list[str]) -> None:
    """All were looked at, each once; what the log says was delivered arrived, signed with one of the secrets."""
    found = rows(stack, "SELECT delivery_id, outcome FROM replay_rows WHERE replay_id = %s", replay)
    assert len(found) == len(dict(found)) == FAILED
    arrived = Counter(each.delivery_id for each in receiver.received if each.path == shop.hook)
    for log in check_logs(stack, [shop]):
        tries = log.attempts - 2  # of before the replay
        assert arrived[log.delivery_id] <= max(tries, 0) + 1, f"{log.delivery_id} arrived more often than it was sent"
        assert log.status != "pending", f"{log.delivery_id} was left behind"
        assert log.status != "delivered" or log.attempts < 3 or arrived[log.delivery_id], f"{log} did not arrive"
    for each in receiver.received:
        genuine = any(is_genuine(secret, each.signature, each.body, each.at) for secret in secrets)
        assert each.path != shop.hook or genuine, f"{each.delivery_id} is not signed"


def report(stack: Stack, replay: str, receiver: Receiver, shop: Shop, living: Victim, name: str, tell: Tell) -> None:
    reasons = dict(
        rows(
            stack, "SELECT coalesce(reason, outcome), count(*) FROM replay_rows WHERE replay_id = %s GROUP BY 1", replay
        )
    )
    statuses = dict(
        rows(stack, "SELECT status, count(*) FROM deliveries WHERE endpoint_id = %s GROUP BY 1", shop.endpoint_id)
    )
    tell(f"the endpoint {name}: rows {reasons}; deliveries {statuses}; {receiver.counts[shop.hook]:,} requests")
    tell(f"    a webhook of another workspace: {living}")
    living.check()


def test(shop: Shop, receiver: Receiver) -> Callable[[], None]:
    """Sends a sample event, and waits until the receiver has it."""
    caller = shop.caller()

    def act() -> None:
        before = receiver.counts[shop.hook]
        caller.apply("POST", f"webhooks/endpoints/{shop.endpoint_id}/test", {"kind": "contact.created"})
        wait_until(lambda: receiver.counts[shop.hook] > before, 30, "it has arrived")

    return act


def state(stack: Stack, replay: str) -> str:
    [(finished,)] = rows(stack, "SELECT finished_at IS NOT NULL FROM replays WHERE id = %s", replay)
    return "done" if finished else "running"
