"""Files of saved replies: sent any number of times, by the workspace alone."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.channels import media
from app.domain.work.units import Unit
from app.errors import Invalid
from app.lib import ids
from app.models.contacts import Contact
from app.models.uploads import Upload
from tests.cast import Api
from tests.talks import locked

REPLY_ID = ids.new("srp")


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(external_id="c-1")["id"])


@pytest.fixture
def upload_id(api: Api, contact_id: str) -> str:
    """A file of a saved reply."""
    stored = media.store(api.workspace_id, "terms.pdf", b"%PDF-1.7")
    keep(api, contact_id, stored.id)
    return str(stored.id)


def keep(api: Api, contact_id: str, upload_id: str, reply_id: str = REPLY_ID) -> list[dict[str, Any]]:
    def task(unit: Unit, _: Contact) -> list[dict[str, Any]]:
        return media.give(unit, api.workspace_id, [upload_id], reply_id)

    return locked(api.workspace_id, contact_id, task)


def claim(api: Api, contact_id: str, upload_id: str, **options: Any) -> list[dict[str, Any]]:
    def task(unit: Unit, _: Contact) -> list[dict[str, Any]]:
        return media.claim_uploads(unit, api.workspace_id, [upload_id], ids.new("msg"), **options)

    return locked(api.workspace_id, contact_id, task)


def test_any_number_of_messages_have_it(api: Api, contact_id: str, upload_id: str) -> None:
    assert claim(api, contact_id, upload_id) == claim(api, contact_id, upload_id) == keep(api, contact_id, upload_id)

    found = Upload.get_by_id(upload_id)
    assert (found.saved_reply_id, found.was_sent, found.message_id, found.expires_at) == (REPLY_ID, True, None, None)


def test_no_other_saved_reply_can_have_it(api: Api, contact_id: str, upload_id: str) -> None:
    with pytest.raises(Invalid):
        keep(api, contact_id, upload_id, ids.new("srp"))


def test_no_visitor_can_send_it(api: Api, contact_id: str, upload_id: str) -> None:
    with pytest.raises(Invalid):
        claim(api, contact_id, upload_id, visitor_id=ids.new("vis"))


def test_a_file_of_a_visitor_cannot_be_kept(api: Api, contact_id: str) -> None:
    theirs = media.store(api.workspace_id, "a.pdf", b"%PDF-1.7", visitor_id=ids.new("vis"))

    with pytest.raises(Invalid):
        keep(api, contact_id, theirs.id)
