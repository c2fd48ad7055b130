"""The script of a web chat: what it contains, and how large it is."""

from __future__ import annotations

import gzip
import json

import pytest
from flask.testing import FlaskClient

from app.channels.web_chat import DAYS
from app.database import rows
from app.lib import ids
from app.models.channels import Channel
from tests import widget
from tests.cast import Api, database_away
from tests.chatting import SECRET, make_chat

MOST_BYTES = 20_000
LOOK = {
    **{"greeting": "g" * 500, "color": "#c02942", "picture": f"https://shop.example/{'p' * 479}"},
    "opening_hours": {day: [{"from": "09:00", "to": "12:30"}, {"from": "13:30", "to": "18:00"}] for day in DAYS},
}


@pytest.fixture
def channel(api: Api) -> Channel:
    return make_chat(api.workspace_id)


def test_the_script_knows_its_channel_and_is_small(client: FlaskClient, channel: Channel) -> None:
    response = client.get(f"/chat/{channel.id}.js")

    assert (response.status_code, response.content_type) == (200, "text/javascript; charset=utf-8")
    assert facts(response.text) == {
        "channel": channel.id,
        "name": "Chat",
        "base": "https://bellhop.test",
        "live": "https://bellhop.test",
        "mostCharacters": 4096,
        "mostBytes": 16 * 1024**2,
    }
    assert len(response.data) <= MOST_BYTES
    assert SECRET not in response.text
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in response.headers


def test_with_all_of_its_look_it_is_still_small(client: FlaskClient, channel: Channel) -> None:
    rows("UPDATE channels SET settings = (settings::jsonb || %s)::json WHERE id = %s", (json.dumps(LOOK), channel.id))

    response = client.get(f"/chat/{channel.id}.js")

    found = facts(response.text)
    assert (found["greeting"], found["picture"]) == (LOOK["greeting"], LOOK["picture"])
    assert "--accent:#c02942" in str(found["look"])
    assert len(found["hours"]) == 8  # type: ignore[arg-type]
    assert "origins" not in response.text
    assert len(response.data) <= MOST_BYTES


def test_a_name_cannot_leave_its_string(client: FlaskClient, channel: Channel) -> None:
    name = "\"});alert(1)//</script>\u2028'"
    rows("UPDATE channels SET name = %s WHERE id = %s", (name, channel.id))

    text = client.get(f"/chat/{channel.id}.js").text

    assert facts(text)["name"] == name


def test_it_is_sent_compressed_and_not_again_if_it_is_the_same(client: FlaskClient, channel: Channel) -> None:
    whole = client.get(f"/chat/{channel.id}.js")
    compressed = client.get(f"/chat/{channel.id}.js", headers={"Accept-Encoding": "gzip"})
    again = client.get(f"/chat/{channel.id}.js", headers={"If-None-Match": whole.headers["ETag"]})

    assert gzip.decompress(compressed.data) == whole.data
    assert again.status_code == 304


def test_a_channel_that_is_not_there_has_no_script(client: FlaskClient, channel: Channel) -> None:
    rows("UPDATE channels SET kind = 'telegram' WHERE id = %s", (channel.id,))

    for channel_id in (channel.id, ids.new("chn"), "x"):
        assert client.get(f"/chat/{channel_id}.js").status_code == 404


def test_what_is_served_is_made_of_its_sources() -> None:
    assert widget.SERVED.read_text() == widget.minified()


def facts(script: str) -> dict[str, str | int]:
    return dict(json.loads(script[script.rindex('({"channel"') + 1 :].rpartition(")")[0]))


def test_a_known_script_is_served_while_the_database_is_away(client: FlaskClient, channel: Channel, api: Api) -> None:
    unknown = make_chat(api.workspace_id)
    before = client.get(f"/chat/{channel.id}.js")
    with database_away():
        known, other = client.get(f"/chat/{channel.id}.js"), client.get(f"/chat/{unknown.id}.js")

    assert (known.status_code, known.data) == (200, before.data)
    assert (other.status_code, "Retry-After" in other.headers) == (503, True)
