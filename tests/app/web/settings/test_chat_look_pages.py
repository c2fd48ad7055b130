"""The form of what visitors of a web chat see."""

from __future__ import annotations

from typing import Any

import pytest
from markupsafe import escape

from app.channels.web_chat import DAYS
from app.lib import ids
from app.models.channels import Channel
from app.models.jobs import Job
from tests import playing
from tests.cast import Api
from tests.chatting import make_chat
from tests.pages import Person

NOTHING = {"greeting": "", "color": "#1f4fd8", "picture": "", **dict.fromkeys(DAYS, "")}
HOSTILE = "</textarea><script>alert(1)</script>"


@pytest.fixture
def channel(api: Api) -> Channel:
    return make_chat(api.workspace_id)


def path(channel: Channel) -> str:
    return f"settings/channels/{channel.id}/look"


def settings(channel: Channel) -> dict[str, Any]:
    return {name: value for name, value in Channel.get_by_id(channel.id).settings.items() if name != "origins"}


def test_all_of_it_is_stored_and_shown_again(owner: Person, channel: Channel) -> None:
    form = NOTHING | {
        **{"greeting": HOSTILE, "color": "#C02942", "picture": "https://shop.example/logo.png"},
        **{"monday": "9-12:30, 13:30\u201318", "saturday": "22:00-02:00", "sunday": "00:00-24:00"},
    }

    answer = owner.post(path(channel), form)

    assert answer.status_code == 303, answer.text
    assert settings(channel) == {
        "greeting": HOSTILE,
        "color": "#c02942",
        "picture": "https://shop.example/logo.png",
        "opening_hours": {
            "monday": [{"from": "09:00", "to": "12:30"}, {"from": "13:30", "to": "18:00"}],
            "saturday": [{"from": "22:00", "to": "02:00"}],
            "sunday": [{"from": "00:00", "to": "00:00"}],
        },
    }
    shown = owner.get(path(channel)).text
    for text in (str(escape(HOSTILE)), "#c02942", "https://shop.example/logo.png", "09:00-12:30, 13:30-18:00"):
        assert text in shown
    assert HOSTILE not in shown


def test_what_is_emptied_is_gone(owner: Person, channel: Channel) -> None:
    owner.post(path(channel), NOTHING | {"greeting": "Hello", "color": "#c02942", "monday": "9-17"})

    assert owner.post(path(channel), NOTHING).status_code == 303
    assert settings(channel) == {"greeting": None, "color": None, "picture": None, "opening_hours": None}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(("monday", text) for text in ("morning", "9-25", "09:60-10:00", "9", "24-8", "1-2,3-4,5-6,7-8,9-10")),
        *(("picture", text) for text in ("http://shop.example/a.png", "javascript:ran()", 'https://a"onerror="')),
        *(("color", text) for text in ("red", "#12345", "#1234567", "#gggggg", "#123456}")),
        ("greeting", "x" * 501),
    ],
)
def test_what_cannot_be_used_is_refused_at_its_field(owner: Person, channel: Channel, field: str, text: str) -> None:
    answer = owner.post(path(channel), NOTHING | {field: text})

    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text.partition(f'id="f-{field}"')[2].partition(">")[0]
    assert str(escape(text)) in answer.text
    assert settings(channel) == {}
    assert Job.select().where(Job.kind == "channels.update").count() == 0


def test_only_who_manages_channels_has_the_form(
    owner: Person, agent: Person, stranger: Person, channel: Channel
) -> None:
    for person, status in ((agent, 403), (stranger, 404)):
        assert person.get(path(channel)).status_code == status
        assert person.post(path(channel), NOTHING | {"greeting": "Mine"}).status_code == status

    assert path(channel) in owner.get(f"settings/channels/{channel.id}").text
    assert path(channel) not in agent.get(f"settings/channels/{channel.id}").text
    assert settings(channel) == {}


def test_other_kinds_have_no_look(owner: Person, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    playing.install(monkeypatch)
    for channel_id in (playing.create(api.workspace_id), ids.new("chn")):
        assert owner.get(f"settings/channels/{channel_id}/look").status_code == 404
