"""Thirty guards, taken away one at a time: each must be missed by a test. `python -m tests.guards [word …]`.

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
        ".count() >= self.most)",
        ".count() < 0)",
        "tests/app/api/test_endpoint_limit.py",
    ),
    Guard(
        "bytes of strangers",
        "app/domain/channels/allowances.py",
        "            if stored > bound.most:",
        "            if False:",
        "tests/app/domain/channels/test_allowances.py",
    ),
    Guard(
        "formula in a file",
        "app/web/lists.py",
        """    return _FORMULA.sub(r"\\1'", value)""",
        "    return value",
        "tests/app/web/test_lists.py",
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
