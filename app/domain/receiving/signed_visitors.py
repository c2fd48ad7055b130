"""Signed visitors: joins a web chat's visitor to the contact that a signed user id names."""

from __future__ import annotations

import time

from app import realtime
from app.channels.web_chat import WebChat
from app.database import rows, transaction
from app.domain.channels.visitors import Visitor
from app.domain.contacts import contacts
from app.domain.lifecycle import merges
from app.domain.triggers import batches
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.errors import Conflict, NotFound, Unavailable
from app.models.contacts import Contact
from app.models.sets import Key

_PATIENCE_SECONDS = 3.0
_PAUSE_SECONDS = 0.02


def join(visitor: Visitor, user_id: str, trace_id: str) -> None:
    """Joins the visitor and its conversation to the contact whose `external_id` is `user_id`.

    Creates the contact if there is none. All visitors of one user see the same conversation. Safe to repeat. Raises
    Conflict if the visitor is known to be another user, NotFound if the visitor was deleted, and Unavailable if the
    contacts stay locked for _PATIENCE_SECONDS.
    """
    if visitor.user_id == user_id:
        return
    if visitor.user_id is not None:
        raise Conflict("This visitor is another user. Begin a new session.")
    until = time.monotonic() + _PATIENCE_SECONDS
    while not _join_now(visitor, user_id, trace_id):
        if time.monotonic() > until:
            raise Unavailable("The contact is busy at this moment. Try again shortly.")
        time.sleep(_PAUSE_SECONDS)
    realtime.check_admission("visitor", visitor.id)


def _join_now(visitor: Visitor, user_id: str, trace_id: str) -> bool:
    """Tries to join once. Returns False, with nothing done, if another transaction has locked a row."""

    def task(unit: Unit) -> None:
        payload = {"external_id": user_id}
        change = Change(visitor.workspace_id, payload, None, "contacts.identify", None, Cause(None, trace_id), unit)
        _join(change, visitor, user_id)

    with transaction():
        results = batches.run([task], _needs(visitor, user_id))
        for result in results:
            if isinstance(result, Exception):
                raise result
        if results:
            _share(visitor, user_id)
    return bool(results)


def _needs(visitor: Visitor, user_id: str) -> list[Key]:
    identity = contacts.identity_key(visitor.workspace_id, WebChat.name, visitor.id)
    return [identity, *contacts.needs(visitor.workspace_id, {"external_id": user_id}, None)]


def _join(change: Change, visitor: Visitor, user_id: str) -> None:
    unit, workspace_id = change.unit, visitor.workspace_id
    identity = contacts.find_identity(unit, workspace_id, WebChat.name, visitor.id)
    named = unit.get(Contact, workspace_id, "external_id", user_id)
    own = unit.get(Contact, workspace_id, "id", identity.contact_id) if identity else None
    if own is None:
        contact_id = named.id if named else contacts.upsert(change).resource_id
        contacts.give_identity(unit, workspace_id, WebChat.name, visitor.id, contact_id)
    elif own.external_id not in (None, user_id):
        raise Conflict("This visitor is another user. Begin a new session.")
    elif named is None:
        altered = Change(workspace_id, change.payload, own.id, change.kind, None, change.cause, unit)
        contacts.update(altered)
    elif named.id != own.id:
        merges.merge(change, named, own)


def _share(visitor: Visitor, user_id: str) -> None:
    """Gives the visitor the conversation that the user has in other browsers.

    The contact's lock serializes visitors who join at once, so that all of them get the first one's `peer`.
    """
    found = rows(
        """
        UPDATE visitors SET user_id = %(user_id)s, peer = coalesce((
            SELECT peer FROM visitors WHERE channel_id = %(channel_id)s AND user_id = %(user_id)s ORDER BY id LIMIT 1
        ), peer)
        WHERE id = %(id)s RETURNING peer
        """,
        {"user_id": user_id, "channel_id": visitor.channel_id, "id": visitor.id},
    )
    if not found:
        raise NotFound  # the visitor was deleted meanwhile
    [(peer,)] = found
    rows(
        "UPDATE conversations SET peer = %s WHERE channel_id = %s AND peer = %s RETURNING id",
        (peer, visitor.channel_id, visitor.id),
    )
