"""Channels: creates, changes and connects them, and records problems with their providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from cryptography.fernet import InvalidToken
from marshmallow import fields, validate

from app.channels.base import OWN_SETTINGS, Account, ChannelKind
from app.channels.kinds import CHANNEL_KINDS
from app.config import settings
from app.database import rows, transaction
from app.domain.channels import channel_requests
from app.domain.deliveries import fan_out
from app.domain.people import members, notifications
from app.domain.work import audit, schema_checks
from app.domain.work.changes import Change, Effect
from app.domain.work.events import Recorder
from app.domain.work.quotas import Quota
from app.domain.work.units import Unit
from app.errors import Fault, Invalid, NotFound
from app.lib import clock, ids, json, vault
from app.lib.schemas import ResponseBody, time
from app.models.channels import Channel
from app.models.jobs import Job

log = structlog.get_logger(__name__)

QUOTA = Quota(Channel, 100, "channels")
STATES = ("connected", "reauthorization_required", "disconnected")
_NEEDS_NONE = "A channel of this kind has no credentials that you could give."
_NO_MEMBER = "There is no such member in this workspace."


def seen_by(unit: Unit, channel_id: str) -> Channel:
    """Returns the channel as it was when the unit first read it, even if deleted."""
    return unit.noted(("channel", channel_id), lambda: Channel.get_by_id(channel_id))


def noted(unit: Unit, found: list[Channel]) -> list[Channel]:
    """Notes the channels for `seen_by`, unless the unit has read them before; returns them."""
    unit.notes |= {("channel", each.id): each for each in found if ("channel", each.id) not in unit.notes}
    return found


def kind_of(channel: Channel) -> ChannelKind:
    """Returns the kind of the channel. Raises KeyError if only a newer version knows the kind."""
    return CHANNEL_KINDS[channel.kind]


def find_anywhere(kind: str, channel_id: str) -> Channel:
    """Returns the channel of that kind, in any workspace. Raises NotFound."""
    found: Channel | None = None
    if ids.is_id(channel_id, "chn"):
        found = Channel.get_or_none(Channel.id == channel_id, Channel.kind == kind, Channel.deleted_at.is_null())
    if found is None:
        raise NotFound
    return found


def kind_to_be(workspace_id: str, channel_id: str) -> ChannelKind:
    """Returns the kind of the channel, or of one that a queued write will create. Raises NotFound."""
    try:
        return kind_of(Channel.find(workspace_id, channel_id))
    except NotFound:
        queued = Job.in_workspace(workspace_id).where(
            Job.kind == "channels.create", Job.resource_id == channel_id, Job.due_at.is_null(False)
        )
        if (job := queued.first()) is None:
            raise
        return CHANNEL_KINDS[job.payload["kind"]]


def account_of(channel: Channel) -> Account:
    """Returns the channel as its kind sees it, with decrypted credentials.

    Raises cryptography.fernet.InvalidToken if no key decrypts them.
    """
    credentials = {} if channel.credentials is None else unsealed(bytes(channel.credentials))
    return Account(channel.id, channel.settings, credentials, _api_url(channel.kind), hook_address(channel))


def hook_address(channel: Channel) -> str:
    """Returns the address for the provider's webhooks."""
    return f"{settings().base_url}/hooks/{channel.kind}/{channel.id}"


def sealed(credentials: Mapping[str, str]) -> bytes:
    """Returns the credentials encrypted for storage."""
    return vault.encrypt(settings().secret_keys, json.dumps(credentials).decode())


def unsealed(credentials: bytes) -> dict[str, str]:
    """Returns the credentials, decrypted. Raises cryptography.fernet.InvalidToken if no key fits."""
    found: dict[str, str] = json.loads(vault.decrypt(settings().secret_keys, credentials))
    return found


def settings_faults(kind: ChannelKind, given: Mapping[str, Any], *, is_patch: bool = False) -> list[Fault]:
    """Returns the faults in the settings. `is_patch`: no setting is required."""
    schema = {name: rule for name, rule in kind.settings_schema.items() if not (is_patch and name == "required")}
    return list(schema_checks.faults(given, schema, "/settings"))


def check_members(workspace_id: str, payload: Mapping[str, Any], *_: object) -> None:
    """Raises Invalid if the settings name members that the workspace does not have."""
    wanted = payload.get("settings", {}).get("member_ids") or []
    existing = members.existing(workspace_id, wanted)
    unknown = [place for place, member_id in enumerate(wanted) if member_id not in existing]
    if unknown:
        raise Invalid(*(Fault(f"/settings/member_ids/{place}", _NO_MEMBER) for place in unknown))


def check_change(workspace_id: str, payload: Mapping[str, Any], channel_id: str, *_: object) -> None:
    """Raises NotFound, and Invalid for unknown members or settings that the kind does not have."""
    kind = kind_to_be(workspace_id, channel_id)
    if faults := settings_faults(kind, payload.get("settings", {}), is_patch=True):
        raise Invalid(*faults)
    check_members(workspace_id, payload)


def credentials_faults(kind: ChannelKind, given: Mapping[str, Any] | None) -> list[Fault]:
    """Returns the faults in the credentials. Kinds without a schema accept no credentials."""
    if kind.credentials_schema is None:
        return [Fault("/credentials", _NEEDS_NONE)] if given else []
    if given is None:
        return [Fault("/credentials", "Give this field.")]
    return list(schema_checks.faults(given, kind.credentials_schema, "/credentials"))


def fresh_credentials(kind: ChannelKind, given: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
    """Returns the sealed credentials to store, and the credentials that the creator is shown once.

    The `secret` of a web chat is shown; credentials for a provider never are.
    """
    made = kind.fresh_credentials(given or {})
    return sealed(made).decode(), {} if kind.has_provider else {"secret": made["secret"]}


def create(change: Change) -> Effect:
    """Creates the channel from the API fields and the sealed credentials in `payload`.

    A channel without a provider is connected at once; for others, the provider is asked after the commit. Raises
    Conflict above the QUOTA, and Invalid for unknown members.
    """
    payload, kind = change.payload, CHANNEL_KINDS[change.payload["kind"]]
    check_members(change.workspace_id, payload)
    QUOTA.keep(change.workspace_id)
    Channel.insert(
        id=change.target,
        workspace_id=change.workspace_id,
        kind=kind.name,
        name=payload["name"],
        state="disconnected" if kind.has_provider else "connected",
        settings=payload["settings"],
        credentials=payload["sealed_secret"].encode(),
    ).execute()
    if kind.has_provider:
        connect(change.workspace_id, change.target)
    audit.record(change, "channel", change.target, payload)
    return Effect("made", "channel", change.target)


def update(change: Change) -> Effect:
    """Changes the name and the given settings.

    Connects again if a setting that concerns the provider changes. Raises NotFound, and Invalid for unknown members and
    for settings that the channel's kind does not have.
    """
    channel, given = Channel.find(change.workspace_id, change.target), change.payload.get("settings", {})
    kind = kind_of(channel)
    if faults := settings_faults(kind, given, is_patch=True):
        raise Invalid(*faults)
    check_members(channel.workspace_id, change.payload)
    merged = channel.settings | given
    _set(channel, name=change.payload.get("name", channel.name), settings=merged)
    changed = {name for name in given if given[name] != channel.settings.get(name)}
    if kind.has_provider and changed - OWN_SETTINGS.keys():
        connect(channel.workspace_id, channel.id)
    audit.record(change, "channel", channel.id, change.payload)
    return Effect("changed", "channel", channel.id)


def reauthorize(change: Change) -> Effect:
    """Replaces the credentials with the sealed ones in `payload`, and asks the provider to connect.

    Waiting messages are sent once the channel is connected. Raises NotFound.
    """
    channel = Channel.find(change.workspace_id, change.target)
    _set(channel, credentials=change.payload["sealed_secret"].encode())
    if kind_of(channel).has_provider:
        connect(channel.workspace_id, channel.id)
    audit.record(change, "channel", channel.id, {})
    return Effect("changed", "channel", channel.id)


def connect(workspace_id: str, channel_id: str) -> None:
    """Queues a request to connect the channel, which is disconnected until the provider agrees."""
    set_state(channel_id, "disconnected", {"code": "connecting", "detail": "The provider is being asked to connect."})
    channel_requests.ask(workspace_id, channel_id, "connect")


def require_reauthorization(channel_id: str, problem: Mapping[str, Any], used: Mapping[str, str] | None = None) -> bool:
    """Records that the provider refuses the credentials: messages wait for somebody to renew them.

    `problem` has a `code` and a `detail`, which members read. Records an event and notifies the workspace. Returns
    False, with nothing done, if this is recorded already, the channel was deleted, or its credentials are no longer
    `used`. Joins the caller's transaction if there is one.
    """
    with transaction():
        found = Channel.select().where(Channel.id == channel_id, Channel.deleted_at.is_null())
        channel = found.for_update("FOR NO KEY UPDATE").first()  # type: ignore[arg-type]
        if channel is None or channel.state == "reauthorization_required" or _are_replaced(channel, used):
            return False
        set_state(channel_id, "reauthorization_required", problem)
        _announce(channel, problem)
    log.warning("channel.reauthorization_required", channel=channel_id, code=problem["code"])
    return True


def set_state(channel_id: str, state: str, problem: Mapping[str, Any] | None = None) -> None:
    """Sets the state of the channel. `problem`: the reason if it is not connected."""
    said = None if problem is None else json.dumps(problem).decode()
    rows(
        """
        UPDATE channels SET state = new.state, problem = new.problem,
            stopped_at = CASE WHEN new.state = 'connected' THEN NULL
                WHEN channels.state = 'connected' THEN now() ELSE stopped_at END
        FROM (SELECT %s AS state, %s::json AS problem) AS new WHERE id = %s
        """,
        (state, said, channel_id),
    )


_PROBLEM = {
    "description": "Why it is not connected, with `code` and `detail`; `connecting` while the provider is asked.",
    "example": None,
}
_HOOK_ADDRESS = {
    "description": "Where the provider sends the messages of contacts; null for web chat, which has no provider.",
    "example": "https://bellhop.example/hooks/telegram/chn_01kaj5bd40e6rr3f5y2kq0w9xz",
}


class ChannelSchema(ResponseBody):
    id = fields.String()
    kind = fields.String(validate=validate.OneOf(list(CHANNEL_KINDS)), metadata={"example": "web_chat"})
    name = fields.String(metadata={"example": "Shop"})
    state = fields.String(validate=validate.OneOf(STATES))
    problem = fields.Dict(allow_none=True, metadata=_PROBLEM)
    settings = fields.Dict(metadata={"example": {"origins": ["https://shop.example"]}})
    hook_address = fields.String(allow_none=True, metadata=_HOOK_ADDRESS)
    created_at = time("When the channel was created.")


def represent(channel: Channel) -> dict[str, Any]:
    """Returns the channel as the API shows it, without its credentials."""
    kind = CHANNEL_KINDS.get(channel.kind)
    return ChannelSchema.of(channel, hook_address=hook_address(channel) if kind is None or kind.has_provider else None)


def represent_problem(channel: Channel, problem: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the `data` of a `channel.reauthorization_required` event."""
    state = {"state": "reauthorization_required", "problem": problem}
    return {"channel": {"id": channel.id, "kind": channel.kind, "name": channel.name, **state}}


def _announce(channel: Channel, problem: Mapping[str, Any]) -> None:
    recorder = Recorder(channel.workspace_id)
    recorder.record("channel.reauthorization_required", represent_problem(channel, problem))
    fan_out.write(recorder)
    detail = {"channel_id": channel.id, "name": channel.name, "reason": problem["detail"]}
    notifications.note(channel.workspace_id, "channel_refused", f"{channel.id} {clock.now()}", detail)


def _are_replaced(channel: Channel, used: Mapping[str, str] | None) -> bool:
    if used is None:
        return False
    try:
        return channel.credentials is None or unsealed(bytes(channel.credentials)) != used
    except InvalidToken:
        return False


def _set(channel: Channel, **fields: Any) -> None:
    """Changes the channel. Raises NotFound if it was deleted meanwhile."""
    is_there = (Channel.id == channel.id) & Channel.deleted_at.is_null()
    if not Channel.update(**fields).where(is_there).execute():
        raise NotFound()


def _api_url(kind: str) -> str:
    """Returns the address of the provider's API, from the kind's setting; "" if there is none."""
    return str(getattr(settings(), f"{kind}_api_url", ""))
