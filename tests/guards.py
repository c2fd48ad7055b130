"""Guards, taken away one at a time: each must be missed by a test. `python -m tests.guards [word …]`.

A guard is a line that keeps somebody out, or something from happening twice. The tests that run are those named beside
it, in a copy of the project; one that passes without its guard proves nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".data", ".conformance", ".browser", "__pycache__", ".*_cache")


class Guard(NamedTuple):
    """What stands in the file, what would stand there without the guard, and the tests that must miss it."""

    what: str
    file: str
    text: str
    without: str
    tests: str


GUARDS = [
    # Who may come in
    Guard(
        "scope of a token",
        "app/api/authentication.py",
        "    if not any(map(who.may, (restriction, *others))):",
        "    if False:",
        "tests/app/api/test_refusals.py",
    ),
    Guard(
        "workspace of a token",
        "app/api/authentication.py",
        'request.view_args.pop("workspace", who.workspace_id) != who.workspace_id',
        'not request.view_args.pop("workspace", who.workspace_id)',
        "tests/app/api/test_refusals.py",
    ),
    Guard(
        "revoked token",
        "app/domain/people/tokens.py",
        "        WHERE tokens.digest = %s AND tokens.revoked_at IS NULL",
        "        WHERE tokens.digest = %s",
        "tests/app/api/test_refusals.py tests/app/test_gunicorn.py",
    ),
    Guard(
        "role of a member",
        "app/web/access.py",
        "    raise Forbidden.to(action)",
        "    return",
        "tests/app/web/test_matrix.py",
    ),
    Guard(
        "workspace of a page",
        "app/web/access.py",
        "        if membership.workspace_id == path_id:",
        "        if membership.workspace_id:",
        "tests/app/web/test_matrix.py",
    ),
    Guard(
        "pages of staff",
        "app/web/access.py",
        'access.get("staff") and not g.viewer.signed.is_support',
        "False",
        "tests/app/web/test_matrix.py",
    ),
    Guard(
        "membership of staff",
        "app/sql/find_session.sql",
        " AND NOT accounts.is_support ORDER BY",
        " ORDER BY",
        "tests/app/domain/people/test_support_accounts.py",
    ),
    Guard(
        "session of a disabled account",
        "app/sql/find_session.sql",
        "    AND accounts.disabled_at IS NULL",
        "",
        "tests/app/domain/people/test_support_accounts.py",
    ),
    Guard(
        "password of a disabled account",
        "app/domain/people/accounts.py",
        " if account is not None and account.disabled_at is None else None",
        " if account is not None else None",
        "tests/app/domain/people/test_support_accounts.py",
    ),
    Guard(
        "link of a disabled account",
        "app/domain/people/links.py",
        "    if account.disabled_at is not None:",
        "    if False:",
        "tests/app/domain/people/test_support_accounts.py",
    ),
    Guard(
        "password of staff by an invitation",
        "app/domain/people/links.py",
        "(password_hash IS NULL AND NOT is_support)",
        "password_hash IS NULL",
        "tests/app/domain/people/test_support_accounts.py",
    ),
    Guard(
        "staff as members",
        "app/domain/people/links.py",
        "        if link.workspace_id is not None and accounts.get(link.account_id).is_support:",
        "        if False:",
        "tests/app/domain/people/test_support_accounts.py",
    ),
    Guard(
        "visit of staff",
        "app/web/access.py",
        "        raise VisitRequired\n",
        "        return\n",
        "tests/app/web/test_matrix.py",
    ),
    Guard(
        "token of a form",
        "app/web/__init__.py",
        "    csrf = CSRFProtect(pages)",
        "    csrf = CSRFProtect()",
        "tests/app/web/test_attacks.py",
    ),
    Guard(
        "last owner",
        "app/domain/people/members.py",
        "        if is_last_owner:\n",
        "        if False:\n",
        "tests/app/domain/people/test_members.py",
    ),
    Guard(
        "signature of Telegram",
        "app/channels/telegram.py",
        "return bool(secret) and hmac.compare_digest(given.encode(), secret.encode())",
        "return True",
        "tests/app/channels",
    ),
    Guard(
        "signature of WhatsApp",
        "app/channels/whatsapp.py",
        'return hmac.compare_digest(headers.get("x-hub-signature-256", "").encode(), expected.encode())',
        "return True",
        "tests/app/channels",
    ),
    Guard(
        "signature of a chat's user",
        "app/channels/web_chat.py",
        "return hmac.compare_digest(self.signature(account, user).encode(), signature.lower().encode())",
        "return True",
        "tests/app/api/test_chats.py",
    ),
    Guard(
        "origin of a chat",
        "app/api/chats.py",
        '    if not visitors.is_allowed(channel.settings.get("origins", []), origin):',
        "    if False:",
        "tests/app/api/test_chats.py",
    ),
    Guard(
        "channel of a visitor",
        "app/api/chats.py",
        "    if found is None or found.channel_id != _channel().id:",
        "    if found is None:",
        "tests/app/api/test_chats.py",
    ),
    # What belongs to others
    Guard(
        "another workspace's run",
        "app/domain/automations/runs.py",
        "Run.in_workspace(workspace_id).where(Run.id == run_id).first()",
        "Run.select().where(Run.id == run_id).first()",
        "tests/app/test_owned_lookups.py tests/app/api/test_refusals.py",
    ),
    Guard(
        "another workspace's upload",
        "app/domain/channels/media.py",
        "Upload.in_workspace(workspace_id).where(Upload.id.in_(upload_ids)",
        "Upload.select().where(Upload.id.in_(upload_ids)",
        "tests/app/api/test_messages.py",
    ),
    Guard(
        "a file of a saved reply, from visitors",
        "app/domain/channels/media.py",
        "found.saved_reply_id is not None and visitor_id is None",
        "found.saved_reply_id is not None",
        "tests/app/domain/channels/test_reply_files.py",
    ),
    Guard(
        "a macro's message that may not be sent",
        "app/domain/macros/macro_actions.py",
        "    if queued.failure is not None:",
        "    if False:",
        "tests/app/api/test_macros.py",
    ),
    Guard(
        "another list's cursor",
        "app/lib/cursors.py",
        "    if not hmac.compare_digest(seal(key, scope, last), cursor):",
        "    if False:",
        "tests/app/lib tests/app/api/test_lists.py",
    ),
    Guard(
        "another listener's place",
        "app/live/places.py",
        "not any(hmac.compare_digest(_mac(key, place, admitted), mac) for key in _keys())",
        "not place",
        "tests/app/live",
    ),
    Guard(
        "address of a file",
        "app/domain/channels/media.py",
        "    if not any(hmac.compare_digest(proof.encode(), each.encode()) for each in _proofs(upload_id)):",
        "    if False:",
        "tests/app/api/test_media.py tests/app/domain/channels/test_media.py",
    ),
    # What happens once
    Guard(
        "claim of a delivery",
        "app/sql/record_attempts.sql",
        "    FROM outcome JOIN free USING (id, claim)\n    CROSS",
        "    FROM outcome JOIN free USING (id)\n    CROSS",
        "tests/app/domain/deliveries",
    ),
    Guard(
        "claim of a request",
        "app/sql/hand_over_responses.sql",
        "    JOIN run_requests request USING (id, claim)",
        "    JOIN run_requests request USING (id)",
        "tests/app/domain/automations/test_http_requests.py",
    ),
    Guard(
        "claim of a row that is put off, dropped or released",
        "app/mailbox/outcomes.py",
        "    mail.id = held.id AND mail.claim = held.claim AND",
        "    mail.id = held.id AND",
        "tests/app/mailbox/test_outcomes.py",
    ),
    Guard(
        "idempotency key of another request",
        "app/domain/jobs/idempotency_keys.py",
        "        raise IdempotencyKeyReused()",
        "        pass",
        "tests/app/api/test_writes.py",
    ),
    Guard(
        "message whose time has not come or is over",
        "app/domain/conversations/scheduled_messages.py",
        "    if message is None or message.send_at is None or message.send_at > unit.now:",
        "    if message is None:",
        "tests/app/domain/conversations/test_due_messages.py",
    ),
    # What is refused or limited
    Guard(
        "private address",
        "app/outbound/dialling.py",
        "return is_public(ip_address(ip), self._allowed)",
        "return True",
        "tests/app/outbound",
    ),
    Guard(
        "private address in text",
        "app/lib/addresses.py",
        '    if "@" in authority:',
        "    if False:",
        "tests/app/lib/test_addresses.py",
    ),
    Guard(
        "loop of automations",
        "app/domain/automations/definitions/loops.py",
        "        if path is not None:",
        "        if False:",
        "tests/app/domain/automations/definitions",
    ),
    Guard(
        "length of a body",
        "app/api/parsing/bodies.py",
        "        _check_length(request, body.tell(), most_bytes)",
        "        pass",
        "tests/app/api/test_uploads.py tests/app/api/test_imports.py tests/app/api/test_parsing.py",
    ),
    Guard(
        "endpoints of a workspace",
        "app/domain/work/quotas.py",
        ".count() >= self.most:",
        ".count() < 0:",
        "tests/app/api/test_endpoint_limit.py",
    ),
    Guard(
        "bytes of strangers",
        "app/domain/channels/stored_bytes.py",
        "            if stored > bound.most:",
        "            if False:",
        "tests/app/domain/channels/test_stored_bytes.py",
    ),
    Guard(
        "formula in a file",
        "app/lib/cells.py",
        "    changed = _FORMULA.sub(_guard, text)",
        "    changed = text",
        "tests/app/web/test_lists.py",
    ),
    # Notes, labels, snoozes and counts of conversations
    Guard(
        "notes are for members",
        "app/api/notes.py",
        "message_access.MESSAGES, NoteSchema, PageQuery",
        '"contacts", NoteSchema, PageQuery',
        "tests/app/api/test_refusals.py",
    ),
    Guard(
        "another workspace's note",
        "app/domain/resources.py",
        "Note.find, notes",
        "lambda _, id: Note.get_by_id(id), notes",
        "tests/app/api/test_refusals.py",
    ),
    Guard(
        "notes of another workspace's conversation",
        "app/api/notes.py",
        """newest first.\"\"\"
    found = Conversation.find(caller().workspace_id, conversation_id)""",
        """newest first.\"\"\"
    found = Conversation.get_by_id(conversation_id)""",
        "tests/app/api/test_refusals.py",
    ),
    Guard(
        "mention of somebody else's member",
        "app/domain/conversations/notes.py",
        "    unknown = [number for number, each in enumerate(mentions) if each not in known]",
        "    unknown: list[int] = []",
        "tests/app/api/test_notes.py",
    ),
    Guard(
        "mention of somebody who was a member",
        "app/sql/add_notifications.sql",
        "WHERE members.id = new.member_id AND members.workspace_id = new.workspace_id",
        "",
        "tests/app/domain/conversations/test_notes.py",
    ),
    Guard(
        "notes of a conversation",
        "app/domain/conversations/notes.py",
        "    return _number(unit, conversation.id) < MOST_NOTES",
        "    return True",
        "tests/app/domain/conversations/test_notes.py",
    ),
    Guard(
        "labels of a conversation",
        "app/domain/conversations/conversation_changes.py",
        "    if len(after) > MOST_LABELS:",
        "    if False:",
        "tests/app/domain/conversations/test_conversation_labels.py",
    ),
    Guard(
        "labels by automations",
        "app/domain/automations/steps/conversation_steps.py",
        "        if len(conversation.labels) >= conversation_changes.MOST_LABELS:",
        "        if False:",
        "tests/app/domain/automations/steps/test_label_conversation.py",
    ),
    Guard(
        "length of a snooze",
        "app/domain/conversations/snoozes.py",
        "    return now < until <= now + timedelta(days=MOST_DAYS)",
        "    return now < until",
        "tests/app/domain/conversations/test_snoozes.py",
    ),
    Guard(
        "snooze by automations",
        "app/domain/automations/steps/conversation_steps.py",
        "    if not snoozes.is_possible(until, context.now):",
        "    if False:",
        "tests/app/domain/automations/steps/test_snooze_conversation.py",
    ),
    Guard(
        "counts of another workspace",
        "app/domain/conversations/conversation_counts.py",
        "WHERE workspace_id = %(workspace_id)s AND (key < 'label:'",
        "WHERE true AND (key < 'label:'",
        "tests/app/domain/conversations/test_conversation_counts.py",
    ),
    Guard(
        "new counts of another workspace",
        "app/domain/conversations/conversation_counts.py",
        """FROM conversation_deltas
        WHERE workspace_id = %(workspace_id)s""",
        """FROM conversation_deltas
        WHERE true""",
        "tests/app/domain/conversations/test_conversation_counts.py",
    ),
    Guard(
        "labels of another workspace's counts",
        "app/domain/conversations/conversation_counts.py",
        "WHERE workspace_id = %(workspace_id)s AND key >= 'label:' AND key < 'label;' ORDER",
        "WHERE key >= 'label:' AND key < 'label;' ORDER",
        "tests/app/domain/conversations/test_conversation_counts.py",
    ),
    Guard(
        "another workspace's conversations that wait",
        "app/models/conversations.py",
        "looked_at = cls.in_workspace(workspace_id).where(cls.waiting_since",
        "looked_at = cls.select().where(cls.waiting_since",
        "tests/app/api/test_conversations.py",
    ),
    Guard(
        "order of conversations that wait",
        "app/models/conversations.py",
        'order_by(SQL("waiting_since, id"))',
        'order_by(SQL("id"))',
        "tests/app/api/test_conversations.py",
    ),
    Guard(
        "order of messages in a conversation",
        "app/domain/channels/outboxes.py",
        "    if is_behind:\n",
        "    if False:\n",
        "tests/app/domain/channels/test_outboxes.py",
    ),
    # Buttons and files of automations
    Guard(
        "button of another visitor",
        "app/domain/channels/chats.py",
        "WHERE channel_id = %s AND peer = %s AND button->>'id' = %s",
        "WHERE channel_id = %s AND (peer = %s OR true) AND button->>'id' = %s",
        "tests/app/api/test_chats.py",
    ),
    Guard(
        "button that was not offered",
        "app/domain/channels/chats.py",
        "AND peer = %s AND button->>'id' = %s",
        "AND peer = %s AND (button->>'id' = %s OR true)",
        "tests/app/api/test_chats.py",
    ),
    Guard(
        "button of another message",
        "app/domain/channels/buttons.py",
        "AND provider_id = %s AND button",
        "AND (provider_id = %s OR true) AND button",
        "tests/app/domain/receiving/test_arrival_effects.py",
    ),
    Guard(
        "button of another channel",
        "app/domain/channels/buttons.py",
        "        WHERE channel_id = %s AND",
        "        WHERE (channel_id = %s OR true) AND",
        "tests/app/domain/receiving/test_arrival_effects.py",
    ),
    Guard(
        "choice that was not offered",
        "app/domain/automations/steps/ask.py",
        "    if pressed in by_id:",
        "    if pressed:",
        "tests/app/domain/automations/talking_runs/test_asking.py",
    ),
    Guard(
        "private address of a run's file",
        "app/domain/automations/steps/fetched_files.py",
        "    return check_address(address, settings().webhook_allowed_networks)",
        "    return None",
        "tests/app/domain/automations/steps/test_fetched_files.py",
    ),
    Guard(
        "size of a fetched file",
        "workers/file_fetcher.py",
        "        if len(answer.body) > media.MOST_BYTES:",
        "        if False:",
        "tests/workers/test_file_fetcher.py",
    ),
    Guard(
        "size of a stored file",
        "app/domain/channels/media.py",
        "files.write(path, watched(), MOST_BYTES)",
        "files.write(path, watched(), 2**60)",
        "tests/app/domain/channels/test_media.py tests/app/api/test_uploads.py",
    ),
    Guard(
        "bytes that runs store",
        "app/domain/channels/fetches.py",
        "        allowed = {workspace_id: bounds.STORED_PER_WORKSPACE}",
        "        allowed = {}",
        "tests/workers/test_file_fetcher.py",
    ),
    Guard(
        "file of another run",
        "app/domain/automations/steps/fetched_files.py",
        "each.run_id == run.id and ",
        "",
        "tests/app/domain/automations/steps/test_fetched_files.py",
    ),
    Guard(
        "file of a run that has ended",
        "app/domain/channels/fetches.py",
        "    if claimed.carried.run_id is not None and claimed.carried.run_id not in unfinished:",
        "    if False:",
        "tests/workers/test_file_fetcher.py",
    ),
    # Starts by time, and replies
    Guard(
        "start of a time that has fired",
        "app/domain/triggers/due_starts.py",
        "        unit.put(waiting.altered(fired_for=day))",
        "        pass",
        "tests/app/domain/triggers/test_due_starts.py tests/app/domain/triggers/test_date_starts.py",
    ),
    Guard(
        "start that another scheduler has begun",
        "app/domain/triggers/due_starts.py",
        " or waiting.at > unit.now:",
        ":",
        "tests/app/domain/triggers/test_due_starts.py tests/app/domain/triggers/test_date_starts.py",
    ),
    Guard(
        "start of a booking that has moved",
        "app/domain/triggers/waiting_starts.py",
        "is_ahead(unit, about) and waiting.at == _before(trigger, about)",
        "is_ahead(unit, about)",
        "tests/app/domain/triggers/test_due_starts.py tests/app/domain/triggers/test_waiting_starts.py",
    ),
    Guard(
        "start of a booking that was cancelled",
        "app/domain/triggers/waiting_starts.py",
        'booking.status == "booked" and ',
        "",
        "tests/app/domain/triggers/test_waiting_starts.py",
    ),
    Guard(
        "triggers by time of a workspace",
        "app/domain/automations/publications.py",
        "> MOST_TIMED:",
        "< 0:",
        "tests/app/domain/triggers/test_start_scans.py",
    ),
    Guard(
        "scan before others know of the trigger",
        "app/domain/triggers/start_scans.py",
        " AND begins_at <= pg_snapshot_xmin(pg_current_snapshot())",
        "",
        "tests/app/domain/triggers/test_start_scans.py",
    ),
    Guard(
        "reply to a run that has one",
        "app/domain/conversations/replies.py",
        " or run.answer is not None",
        "",
        "tests/app/domain/conversations/test_replies.py",
    ),
    Guard(
        "reply in another conversation",
        "app/domain/conversations/replies.py",
        " or run.conversation_id != conversation.id",
        "",
        "tests/app/domain/conversations/test_replies.py",
    ),
    Guard(
        "reply that another run has taken",
        "app/domain/conversations/replies.py",
        " AND run_id IS NULL",
        "",
        "tests/app/domain/conversations/test_replies.py",
    ),
    Guard(
        "claim of a run",
        "app/domain/automations/executions.py",
        " or run.claim != claimed.claim",
        "",
        "tests/app/domain/automations/test_executions.py",
    ),
]


def main(words: Sequence[str]) -> int:
    """Takes the guards away that one of the words is in, or all. Returns how many no test missed."""
    unmissed = 0
    for guard in GUARDS:
        if not words or any(word in guard.what for word in words):
            is_missed, last = _try_without(guard)
            unmissed += not is_missed
            print(f"{'missed' if is_missed else 'NOT MISSED':10}  {guard.what:40} {last}", flush=True)
    return unmissed


def _try_without(guard: Guard) -> tuple[bool, str]:
    """Whether a test failed, and pytest's last line."""
    with TemporaryDirectory(prefix="bellhop-guards-") as directory:
        copy = Path(directory) / "copy"
        shutil.copytree(ROOT, copy, ignore=_NOT_COPIED)
        path = copy / guard.file
        path.write_text(path.read_text().replace(guard.text, guard.without, 1))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *guard.tests.split()]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    # 1: tests failed. Any other code but 0 says that they could not be run.
    lines = done.stdout.strip().splitlines() or [""]
    return done.returncode == 1, lines[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
