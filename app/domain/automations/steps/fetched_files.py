"""Files of a step's message. They are fetched from other servers before it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from app import mailbox
from app.channels.inbound import Media
from app.config import settings
from app.database import database
from app.domain.automations.steps.base import StepContext, StepFailed, Wait
from app.domain.channels import channels, fetches, media
from app.domain.conversations import sending_checks
from app.errors import Fault, Invalid
from app.lib.addresses import LONGEST_ADDRESS, check_address
from app.lib.json import timestamp
from app.models.conversations import Conversation
from app.models.uploads import Upload

# How many seconds a run waits for its files.
MOST_SECONDS = 300
FIELD: Mapping[str, Any] = {
    "type": "array",
    "minItems": 1,
    "maxItems": media.MOST_FILES,
    "items": {
        "type": "object",
        "required": ["address"],
        "additionalProperties": False,
        "properties": {"address": {"type": "string", "minLength": 1, "maxLength": LONGEST_ADDRESS}},
    },
    "description": "Files to send with the text, each with the `address` from which it is fetched: it must begin with"
    f" `https://` and lead to a public server. At most {media.MOST_BYTES // 1024**2} MiB each. The run waits for them,"
    f" {MOST_SECONDS // 60} minutes at most, and fails with `error` if one cannot be fetched.",
}


def faults(given: Sequence[Mapping[str, str]], pointer: str) -> Iterator[Fault]:
    """Yields the faults of the files' addresses. Skips templates, which `rendered` checks."""
    for index, each in enumerate(given):
        if "{" not in each["address"] and (refusal := _refusal(each["address"])):
            yield Fault(f"{pointer}/{index}/address", refusal)


def rendered(context: StepContext) -> list[str]:
    """Returns the rendered addresses of the step's files. Raises StepFailed if one is not allowed."""
    addresses = [context.render(each["address"]) for each in context.step.fields.get("attachments", ())]
    for address in addresses:
        if refusal := _refusal(address):
            raise StepFailed("error", f"The file cannot be fetched. {refusal}")
    return addresses


def awaited(context: StepContext, conversation: Conversation) -> Wait | None:
    """Requests the step's files on the first call.

    Returns the wait for them; None once all are here, or if the step has none. Raises StepFailed and Busy.
    """
    if "attachments" not in context.step.fields:
        return None
    files = _files(context)
    if not files:
        return _ask(context, conversation)
    for file in files:
        if file.file is None and file.due_at is None and file.next_attempt_at is None:
            raise StepFailed("error", f"The file '{file.name}' could not be fetched: {file.problem}")
    if all(file.file is not None for file in files):
        return None
    until = datetime.fromisoformat(context.run.saved[context.step.id]["until"])
    if until <= context.now:
        problem = next((file.problem for file in files if file.problem), "no answer came")
        raise StepFailed("error", f"The files did not come within {MOST_SECONDS // 60} minutes: {problem}")
    return Wait("file", "The message waits for more of its files.", until)


def attached(context: StepContext, message_id: str) -> list[dict[str, Any]]:
    """Attaches the fetched files to the message, and returns its `attachments`.

    Returns [] if a file has expired. Raises Invalid and Busy.
    """
    files = [file.id for file in _files(context)]
    return media.claim_uploads(context.unit, context.run.workspace_id, files, message_id)


def _ask(context: StepContext, conversation: Conversation) -> Wait:
    addresses, run = rendered(context), context.run
    channel = channels.seen_by(context.unit, conversation.channel_id)
    try:
        sending_checks.check_size(channels.kind_of(channel), "", len(addresses))
    except Invalid as error:
        raise StepFailed("error", error.faults[0].detail) from error
    wanted = [Media(address, name=unquote(urlsplit(address).path)) for address in addresses]
    expected = media.expect(context.unit, channel, wanted, run_id=run.id)
    database.after_commit(partial(mailbox.ring, fetches.MAIL, channel.id))
    until = context.now + timedelta(seconds=MOST_SECONDS)
    asked = {"files": [each["id"] for each in expected], "until": timestamp(until)}
    run_fields = {"conversation_id": conversation.id, "saved": {**run.saved, context.step.id: asked}}
    return Wait("file", "The message waits for its files.", until, {"attachments": addresses}, run_fields=run_fields)


def _files(context: StepContext) -> list[Upload]:
    """Returns the files that the run requested; [] if one has expired, or was sent before."""
    asked, run = context.run.saved.get(context.step.id), context.run
    upload_ids = asked.get("files", ()) if isinstance(asked, dict) else ()
    found = [context.unit.get(Upload, run.workspace_id, "id", each) for each in upload_ids]
    files = [each for each in found if each is not None and each.run_id == run.id and each.expires_at is not None]
    return files if len(files) == len(found) and all(each.expires_at > context.now for each in files) else []


def _refusal(address: str) -> str | None:
    return check_address(address, settings().webhook_allowed_networks)
