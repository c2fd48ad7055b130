from __future__ import annotations

import threading
from typing import Any

import pytest

from app import database
from app.config import settings
from app.domain.channels import channels
from app.domain.deliveries import attempts, lanes
from app.domain.webhooks import endpoints
from app.domain.work import secrets
from app.lib import ids, vault
from app.models.channels import Channel
from app.models.endpoints import Endpoint
from tests import playing
from tests.cast import Api, accept, all_of, apply, in_threads, make_endpoint, one, until
from tests.conftest import Keys
from tests.posts import make_post
from tests.talks import make_channel

OLD, NEW = "old-key-" * 4, "new-key-" * 4


@pytest.fixture(autouse=True)
def old_key(keys: Keys) -> None:
    keys(OLD)


def waiting(api: Api) -> tuple[str, str]:
    """An endpoint that is accepted and not made yet, and its secret."""
    secret, endpoint_id = endpoints.new_secret(), ids.new("whe")
    payload = {"address": "https://shop.example/", "events": ["*"], "sealed_secret": endpoints.seal(secret)}
    accept(api.workspace_id, "endpoints.create", payload, endpoint_id)
    return endpoint_id, secret


def rotate(api: Api, endpoint_id: str) -> str:
    answer = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret")
    api.done(answer)
    return str(answer.json["secret"])


def signing(api: Api, endpoint_id: str) -> tuple[str, ...]:
    """The secrets that sign what goes to the endpoint."""
    api.post("contacts", {"external_id": ids.new("con")})
    api.apply()
    [dispatch] = attempts.claim(lanes.FAST, {endpoint_id: 1})
    return dispatch.secrets


def test_every_secret_gets_under_the_newest_key(api: Api, keys: Keys) -> None:
    endpoint_id, first = make_endpoint(api.workspace_id, "https://shop.example/")
    second = rotate(api, endpoint_id)
    later, third = waiting(api)

    keys(NEW, OLD)
    found = secrets.reencrypt()

    assert found == secrets.Found(reencrypted=3, already=0, unreadable=[])
    keys(NEW)
    assert signing(api, endpoint_id) == (second, first)
    assert signing(api, later) == (third,)


def test_a_job_that_broke_keeps_what_it_had_under_the_newest_key(api: Api, keys: Keys) -> None:
    _, secret = waiting(api)
    database.rows("UPDATE jobs SET status = 'failed', due_at = NULL")
    before = one("SELECT payload FROM jobs")

    keys(NEW, OLD)
    assert secrets.reencrypt().reencrypted == 1

    keys(NEW)
    after = one("SELECT payload FROM jobs")
    assert vault.decrypt(settings().secret_keys, after.pop("sealed_secret").encode()) == secret
    assert after == {name: before[name] for name in after}
    assert len(after) == len(before) - 1


def test_what_is_under_the_newest_key_is_not_touched(api: Api, keys: Keys) -> None:
    make_endpoint(api.workspace_id, "https://old.example/")
    keys(NEW, OLD)
    make_endpoint(api.workspace_id, "https://new.example/")
    waiting(api)
    rows = """
        SELECT xmin::text || xmax::text FROM endpoints WHERE address = 'https://new.example/'
        UNION ALL SELECT xmin::text || xmax::text FROM jobs ORDER BY 1
        """
    before = all_of(rows)

    assert secrets.reencrypt() == secrets.Found(reencrypted=1, already=2, unreadable=[])

    assert all_of(rows) == before


def test_to_repeat_it_changes_nothing(api: Api, keys: Keys) -> None:
    make_endpoint(api.workspace_id, "https://shop.example/")
    waiting(api)
    keys(NEW, OLD)
    secrets.reencrypt()
    before = all_of("SELECT xmin::text FROM endpoints UNION ALL SELECT xmin::text FROM jobs")

    assert secrets.reencrypt() == secrets.Found(reencrypted=0, already=2, unreadable=[])

    assert all_of("SELECT xmin::text FROM endpoints UNION ALL SELECT xmin::text FROM jobs") == before


def test_what_was_done_before_it_was_ended_stays_done(api: Api, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        make_endpoint(api.workspace_id, f"https://shop{number}.example/")
    keys(NEW, OLD)
    renew, calls = vault.renew, []

    def killed(*arguments: Any) -> bytes:
        calls.append(arguments)
        if len(calls) == 6:  # each is looked at, and again when it is locked
            raise KeyboardInterrupt
        return renew(*arguments)

    monkeypatch.setattr(vault, "renew", killed)
    with pytest.raises(KeyboardInterrupt):
        secrets.reencrypt()
    monkeypatch.setattr(vault, "renew", renew)

    assert secrets.reencrypt() == secrets.Found(reencrypted=3, already=2, unreadable=[])


@pytest.mark.parametrize("page", [1, 2, 5])
def test_every_page_is_seen(api: Api, keys: Keys, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    made = [make_endpoint(api.workspace_id, f"https://shop{number}.example/") for number in range(4)]
    made += [waiting(api) for _ in range(3)]
    keys(NEW, OLD)
    monkeypatch.setattr(secrets, "PAGE", page)

    assert secrets.reencrypt().reencrypted == 7

    keys(NEW)
    api.apply()
    assert all(signing(api, endpoint_id) == (secret,) for endpoint_id, secret in made[::3])


def test_what_no_key_reads_is_named_and_left_as_it_is(api: Api, keys: Keys) -> None:
    lost, _ = make_endpoint(api.workspace_id, "https://lost.example/")
    keys(NEW, OLD)
    half = rotate(api, lost)
    keys(NEW)
    found, secret = make_endpoint(api.workspace_id, "https://found.example/")
    broken, _ = waiting(api)
    database.rows("""UPDATE jobs SET payload = '{"sealed_secret": "nonsense"}' WHERE resource_id = %s""", (broken,))
    job_id = one("SELECT id FROM jobs WHERE resource_id = %s", broken)
    before = bytes(one("SELECT previous_secret FROM endpoints WHERE id = %s", lost))

    assert secrets.reencrypt() == secrets.Found(reencrypted=0, already=2, unreadable=[job_id, lost])

    assert bytes(one("SELECT previous_secret FROM endpoints WHERE id = %s", lost)) == before
    assert signing(api, found) == (secret,)
    keys(NEW, OLD)
    assert signing(api, lost)[0] == half


def test_a_new_secret_takes_the_place_of_one_that_no_key_reads(api: Api, keys: Keys) -> None:
    lost, _ = make_endpoint(api.workspace_id, "https://lost.example/")
    keys(NEW)

    secret = rotate(api, lost)

    assert signing(api, lost) == (secret,)
    assert secrets.reencrypt() == secrets.Found(reencrypted=0, already=1, unreadable=[])


def test_a_rotation_meanwhile_is_not_undone(api: Api, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint_id, first = make_endpoint(api.workspace_id, "https://shop.example/")
    keys(NEW, OLD)
    # Between the look at the row and its lock.
    reencrypt, rotated = secrets._reencrypt, []
    monkeypatch.setattr(secrets, "_reencrypt", lambda *of: (rotated.append(rotate(api, endpoint_id)), reencrypt(*of)))

    assert secrets.reencrypt() == secrets.Found(reencrypted=1, already=1, unreadable=[])

    keys(NEW)
    assert signing(api, endpoint_id) == (rotated[0], first)


def test_an_update_that_holds_the_row_is_waited_for_and_kept(api: Api, keys: Keys) -> None:
    endpoint_id, secret = make_endpoint(api.workspace_id, "https://shop.example/")
    keys(NEW, OLD)
    holding = threading.Event()

    def update() -> None:
        with database.transaction():
            Endpoint.update(description="Changed").where(Endpoint.id == endpoint_id).execute()
            holding.set()
            until(lambda: one("SELECT count(*) FROM pg_locks WHERE NOT granted"))

    def reencrypt() -> secrets.Found:
        holding.wait(20)
        return secrets.reencrypt()

    assert in_threads([update, reencrypt]) == [None, secrets.Found(reencrypted=1, already=0, unreadable=[])]

    keys(NEW)
    assert one("SELECT description FROM endpoints") == "Changed"
    assert signing(api, endpoint_id) == (secret,)


def test_what_is_accepted_and_rotated_while_it_runs_ends_under_the_newest_key(
    api: Api, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [waiting(api) for _ in range(40)]
    keys(NEW, OLD)
    monkeypatch.setattr(secrets, "PAGE", 3)

    def work() -> list[str]:
        apply(api.workspace_id)
        rotated = []
        for endpoint_id, _ in reversed(made):
            rotated.append(rotate(api, endpoint_id))
        return rotated[::-1]

    rotated, found = in_threads([work, secrets.reencrypt])

    assert found.unreadable == []
    keys(NEW)
    shown = [
        tuple(vault.decrypt(settings().secret_keys, bytes(sealed)) for sealed in row)
        for row in database.rows("SELECT secret, previous_secret FROM endpoints ORDER BY id")
    ]
    assert shown == [(new, old) for new, (_, old) in zip(rotated, made, strict=True)]


@pytest.mark.parametrize(("broken", "said"), [(0, 0), (1, None), (2, 2)], ids=["oldest", "between", "newest"])
def test_the_oldest_and_the_newest_secret_are_looked_at(api: Api, keys: Keys, broken: int, said: int | None) -> None:
    made = [make_endpoint(api.workspace_id, f"https://shop{number}.example/")[0] for number in range(3)]
    assert secrets.unreadable() is None

    database.rows("UPDATE endpoints SET secret = 'nonsense' WHERE id = %s", (made[broken],))

    assert secrets.unreadable() == (None if said is None else made[said])


@pytest.mark.parametrize(("broken", "said"), [(0, 0), (1, None), (2, 2)], ids=["oldest", "between", "newest"])
def test_the_oldest_and_the_newest_credentials_of_channels_are_looked_at(
    api: Api, keys: Keys, broken: int, said: int | None
) -> None:
    made = [make_post(api.workspace_id) for _ in range(3)]
    make_channel(api.workspace_id)
    assert secrets.unreadable() is None

    database.rows("UPDATE channels SET credentials = 'nonsense' WHERE id = %s", (made[broken],))

    assert secrets.unreadable() == (None if said is None else made[said])


def test_the_secrets_of_queued_writes_are_looked_at(api: Api, keys: Keys) -> None:
    waiting(api)
    assert secrets.unreadable() is None

    keys(NEW)

    assert secrets.unreadable() == one("SELECT id FROM jobs")


def test_without_an_endpoint_nothing_is_unreadable(keys: Keys) -> None:
    assert secrets.unreadable() is None
    assert secrets.reencrypt() == secrets.Found()


def test_credentials_of_channels_get_under_the_newest_key(
    api: Api, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing.install(monkeypatch)
    made = playing.create(api.workspace_id, "1:abc")
    waits = ids.new("chn")
    sealed = channels.sealed({"token": "2:abc"}).decode()
    payload = {"kind": "played", "name": "Shop", "settings": {}, "sealed_secret": sealed}
    accept(api.workspace_id, "channels.create", payload, waits)

    keys(NEW, OLD)
    found = secrets.reencrypt()
    keys(NEW)
    api.apply()

    assert found == secrets.Found(reencrypted=2, already=0, unreadable=[])
    tokens = [channels.account_of(Channel.get_by_id(each)).credentials["token"] for each in (made, waits)]
    assert tokens == ["1:abc", "2:abc"]
