"""Members see who else has a page open."""

from __future__ import annotations

import pytest

from app.live import hub
from tests.app.live.conftest import Listen
from tests.cast import Api, one
from tests.listening import Ear

Seen = list[tuple[tuple[str, ...], bool]]


def presences(ear: Ear) -> Seen:
    return [(tuple(each.data["member_ids"]), each.data["online"]) for each in ear.heard if each.kind == "presence"]


def member_of(email: str) -> str:
    return str(one("SELECT members.id FROM members JOIN accounts ON accounts.id = account_id WHERE email = %s", email))


def test_members_see_each_other_come_and_go(api: Api, signs: None, listen: Listen) -> None:
    ear = listen(api)
    other = listen(api, "other@shop.example")
    other_id = member_of("other@shop.example")
    ear.until(lambda _: ((other_id,), True) in presences(ear))
    again = Ear(other.port, headers=other.headers).open().until_placed()
    other.close()
    again.close()

    ear.until(lambda _: ((other_id,), False) in presences(ear))
    assert presences(ear).count(((other_id,), True)) == 1
    assert presences(ear).count(((other_id,), False)) == 1


@pytest.fixture
def commented_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "COMMENT_SECONDS", 0.05)


def test_who_comes_later_hears_who_is_there(commented_often: None, api: Api, signs: None, listen: Listen) -> None:
    listen(api)
    later = listen(api, "later@shop.example")

    members = {member_of("owner@shop.example"), member_of("later@shop.example")}
    later.until(lambda _: any(set(those) == members for those, online in presences(later) if online))
