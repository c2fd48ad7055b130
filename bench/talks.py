"""Conversations and messages of a year, inserted by set-based SQL.

Nine of ten conversations are closed, and a tenth of the others is snoozed. Triggers are off, because they would tell
listeners of each message; the rows that they keep are filled in afterwards.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bench.sites import Site
from tests.histories import typeid

DAYS = 365
LABELS = ("vip", "refund", "shipping", "complaint", "wholesale")
# A text consists of eight of these words.
WORDS = (
    *("tulip", "rose", "order", "parcel", "late", "broken", "refund", "invoice", "thanks", "please", "when", "where"),
    *("colour", "red", "white", "delivery", "Monday", "address", "wrong", "size", "gift", "card", "water", "vase"),
    *(
        "morning",
        "hello",
        "again",
        "still",
        "waiting",
        "answer",
        "phone",
        "street",
        "Moreau",
        "garden",
        "price",
        "offer",
    ),
)


def insert(site: Site, channel_id: str, member_ids: Sequence[str], conversations: int, each: int) -> None:
    """Inserts conversations over the year, most of them assigned to members in turn.

    Each conversation has a contact of its own and `each` messages.
    """
    now = datetime.now(UTC)
    began = int((now - timedelta(days=DAYS)).timestamp() * 1000)
    apart = DAYS * 86_400_000 // conversations
    moment = f"({began} + n::bigint * {apart})"
    values = {
        **{"workspace": site.workspace, "channel": channel_id, "conversations": conversations, "each": each},
        **{"contact": typeid("con", moment, "n"), "conversation": typeid("cnv", moment, "n")},
        **{"message": typeid("msg", f"({moment} + place * 60000)", "n * 100 + place")},
        **{"at": f"to_timestamp({moment} / 1000.0)", "member": _array(member_ids), "members": len(member_ids)},
        **{"labels": _array(LABELS), "label_count": len(LABELS), "words": _array(WORDS), "word_count": len(WORDS)},
    }
    with site.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for statement in (_CONTACTS, _CONVERSATIONS, _MESSAGES, _LABELS, _COUNTS):
            cursor.execute(statement.format(**values))
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE contacts, conversations, messages, conversation_labels, conversation_counts")


def recounted(site: Site) -> dict[str, int]:
    """Returns how many conversations each key of the counts has, counted anew."""
    found = site.query(
        f"SELECT key, count(*) FROM conversations AS talk, counted_as(talk) AS key"
        f" WHERE workspace_id = '{site.workspace}' GROUP BY key"
    )
    return dict(found)


def kept(site: Site, seconds: float) -> dict[str, int]:
    """Returns the stored counts, once no change waits to be added or `seconds` have passed."""
    ends = time.monotonic() + seconds
    waiting = f"SELECT 1 FROM conversation_deltas WHERE workspace_id = '{site.workspace}' LIMIT 1"
    while site.query(waiting) and time.monotonic() < ends:
        time.sleep(0.1)
    found = site.query(
        f"SELECT key, amount FROM conversation_counts WHERE workspace_id = '{site.workspace}' AND amount <> 0"
    )
    return dict(found)


def _array(texts: Sequence[str]) -> str:
    return "ARRAY[" + ", ".join(f"'{text}'" for text in texts) + "]"


_CONTACTS = """
    INSERT INTO contacts (id, workspace_id, external_id, email, first_name, last_name, created_at, updated_at)
    SELECT {contact}, '{workspace}', 'customer-' || n, 'customer.' || n || '@example.com',
        (ARRAY['Ada', 'Grace', 'Mary', 'Annie', 'Radia', 'Hedy', 'Karen'])[1 + n % 7],
        (ARRAY['Moreau', 'Silva', 'Novak', 'Haddad', 'Okafor'])[1 + n % 5] || n % 1000, {at}, {at}
    FROM generate_series(1, {conversations}) AS n
"""
_CONVERSATIONS = """
    INSERT INTO conversations (id, workspace_id, contact_id, channel_id, peer, status, assignee_id, labels,
        snoozed_until, unread, waiting_since, last_message_at, created_at)
    SELECT {conversation}, '{workspace}', {contact}, '{channel}', (9000000000 + n)::text,
        CASE WHEN n % 10 = 0 THEN 'open' ELSE 'closed' END,
        CASE WHEN n % 40 > 0 THEN ({member})[1 + n / 10 % {members}] END,
        CASE WHEN n % 20 = 0 THEN ARRAY[({labels})[1 + n / 20 % {label_count}]] ELSE '{{}}' END,
        CASE WHEN n % 100 = 0 THEN now() + interval '3 days' END,
        CASE WHEN n % 30 = 0 THEN 1 ELSE 0 END,
        CASE WHEN n % 30 = 0 THEN {at} END,
        {at} + {each} * interval '1 minute', {at}
    FROM generate_series(1, {conversations}) AS n
"""
_MESSAGES = """
    INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status, author,
        created_at)
    SELECT {message}, '{workspace}', id, contact_id, '{channel}',
        CASE WHEN place % 2 = 0 THEN 'in' ELSE 'out' END,
        (SELECT string_agg(({words})[1 + (hashint8(n * 64 + place * 8 + w) & 2147483647) % {word_count}], ' ')
            FROM generate_series(1, 8) AS w),
        CASE WHEN place % 2 = 0 THEN 'received' ELSE 'delivered' END,
        CASE WHEN place % 2 = 0 THEN json_build_object('type', 'contact', 'id', contact_id)
            ELSE '{{"type": "api", "id": null}}'::json END,
        created_at + place * interval '1 minute'
    FROM (SELECT id, contact_id, created_at, row_number() OVER (ORDER BY id) AS n
        FROM conversations WHERE workspace_id = '{workspace}') AS talks, generate_series(1, {each}) AS place
"""
_LABELS = """
    INSERT INTO conversation_labels (workspace_id, label, conversation_id, status)
    SELECT workspace_id, label, id, status FROM conversations, unnest(labels) AS label
    WHERE workspace_id = '{workspace}'
"""
_COUNTS = """
    INSERT INTO conversation_counts (workspace_id, key, amount)
    SELECT '{workspace}', key, count(*) FROM conversations AS talk, counted_as(talk) AS key
    WHERE workspace_id = '{workspace}' GROUP BY key
"""
