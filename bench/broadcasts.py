"""Broadcasts in a workspace with 1,000,000 contacts: how soon they start, how fast, at what cost.

The contacts have conversations on 100 channels, whose rates together are several times what the processes send. Then
one broadcast uses a single channel with a rate of 80 a second. Targets: the first of 300,000 messages is sent within 5
s, 1,500 are sent a second, and the channel's rate is kept within 2 %. During the broadcast, somebody writes to a
contact of the same workspace (95 % are sent within 300 ms). Visitors write to the web chat of another workspace, whose
automation answers (95 % within 150 ms).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from app.models.contacts import SEGMENT_SIZE
from bench import neighbours, sites
from bench.costs import each, measured, written
from bench.errors import BenchError
from bench.figures import Row, at_least, at_most, breakdown, growth, percentile
from bench.provider import Provider, playing
from bench.segments import OPEN_SEGMENTS
from bench.sites import Site, Tell
from bench.statements import counted
from tests.histories import typeid
from tests.journeys.shops import Caller
from tests.stack.ports import free_port
from tests.stack.posts import connect

PORT = free_port()
SETTINGS = {"WHATSAPP_API_URL": f"https://127.0.0.1:{PORT}"}
CHANNELS = 100
WHATSAPP = {"access_token": "token", "app_secret": "secret", "verify_token": "verify"}
PER_SECOND, TOLERANCE = 80, 0.02
MOST_START_SECONDS, LEAST_PER_SECOND, MOST_ANSWER_MS, MOST_CHAT_MS = 5.0, 1_500, 300, 150
PATIENCE_SECONDS = 180
REGULAR = {"field": "contact.tags", "is": "contains", "value": "regular"}
PACED = {"field": "contact.tags", "is": "contains", "value": "paced"}
_CONTACTS = """
    INSERT INTO contacts (id, workspace_id, external_id, first_name, tags, custom_fields, segment, created_at,
        updated_at)
    SELECT {id}, '{workspace}', 'customer-' || n, 'Ada',
        CASE WHEN n <= {paced} THEN '{{paced}}'::text[] WHEN n % 10 < 3 THEN '{{regular}}' ELSE '{{}}' END,
        '{{}}', n / {segment_size}, now() - interval '1 hour', now()
    FROM generate_series(1, {contacts}) AS n
"""
_TALKS = """
    INSERT INTO conversations (id, workspace_id, contact_id, channel_id, peer, status, window_ends_at, last_message_at)
    SELECT {id}, '{workspace}', contacts.id,
        CASE WHEN 'paced' = ANY(tags) THEN '{paced}' ELSE (%s::text[])[1 + n %% {channels}] END, n, 'closed',
        now() + interval '1 day', now()
    FROM (SELECT contacts.*, row_number() OVER (ORDER BY id)::int AS n FROM contacts WHERE tags <> '{{}}') AS contacts
"""


@dataclass(frozen=True)
class Size:
    """How many contacts there are, how many get the paced broadcast, and how long to watch each.

    `alone_seconds`: how long to watch the other workspace's chat before there is a broadcast.
    """

    contacts: int = 1_000_000
    paced: int = 1_800
    seconds: int = 20
    alone_seconds: int = 10


FULL, QUICK = Size(), Size(contacts=20_000, paced=400, seconds=4, alone_seconds=3)


def run(site: Site, tell: Tell, size: Size = FULL) -> list[Row]:
    with playing(site, PORT) as provider:
        channels = [_channel(site, number) for number in range(CHANNELS + 1)]
        _seed(site, size, channels)
        tell(f"{size.contacts:,} contacts made")
        sites.start_types(site, "web", "writes", "automations", "messages", "realtime", "scheduler")
        rows = _fast(site, size, provider, tell)
        rows += _paced(site, size, provider, channels[-1])
        with counted(site) as statements:
            sent, written = _watch(site, provider, size.seconds)
        print(breakdown("Broadcasts", statements, sent), end="\n\n", flush=True)
        by_process = statements.by_process()
        shares = ", ".join(f"{name} {by_process[name] / sent:.2f}" for name in ("automations", "messages", "scheduler"))
        rows.append(Row("broadcasts", "SQL statements of a contact", shares))
    return rows + written


def _fast(site: Site, size: Size, provider: Provider, tell: Tell) -> list[Row]:
    """Measures a broadcast that nothing slows down.

    Meanwhile the shop answers contacts, and another workspace's automation answers visitors.
    """
    visitors = neighbours.visitors(site)
    with neighbours.asking(visitors) as alone:
        time.sleep(size.alone_seconds)
    caller = Caller(site.stack.base_url, site.workspace, site.token)
    began = time.monotonic()
    broadcast_id = _send(caller, REGULAR)
    _until(lambda: provider.count() > 0)
    started = time.monotonic() - began
    with measured(site) as spent, neighbours.asking(visitors) as chatted:
        before, began = provider.count(), time.monotonic()
        answered = [_answer(site, caller, number) for number in range(size.seconds)]
        sent, seconds = provider.count() - before, time.monotonic() - began
    shown = caller.get(f"broadcasts/{broadcast_id}")
    caller.apply("POST", f"broadcasts/{broadcast_id}/abort")
    if shown["failed"] or shown["unknown"] or shown["skipped"]:
        raise BenchError(f"Not every contact got it: {shown}")
    costs = each({name: cpu for name, cpu in spent.items() if not name.startswith("python")}, sent)
    tell(f"{sent / seconds:.0f}/s, {costs}")
    return [
        at_most("broadcasts", f"first of {shown['count']:,} is sent", started, MOST_START_SECONDS, " s", places=1),
        at_least("broadcasts", "contacts reached", sent / seconds, LEAST_PER_SECOND, "/s"),
        Row("broadcasts", "CPU of a contact", costs),
        at_most("broadcasts", "an answer beside it, p95", percentile(answered, 0.95), MOST_ANSWER_MS, " ms", places=0),
        Row("broadcasts", "an answer in another workspace's chat, alone, p95", f"{percentile(alone, 0.95):.0f} ms"),
        at_most(
            "broadcasts",
            "an answer in another workspace's chat, beside it, p95",
            percentile(chatted, 0.95),
            MOST_CHAT_MS,
            " ms",
            places=0,
        ),
    ]


def _paced(site: Site, size: Size, provider: Provider, channel_id: str) -> list[Row]:
    """Measures a broadcast over one channel, which goes at the channel's rate."""
    _until(lambda: not site.query("SELECT 1 FROM messages WHERE due_at IS NOT NULL LIMIT 1"))
    before = len(provider.taken())
    _send(Caller(site.stack.base_url, site.workspace, site.token), PACED, channel_id=channel_id)
    _until(lambda: provider.count() - before >= size.paced)
    times = sorted(taken.at for taken in provider.taken()[before:])
    middle = times[PER_SECOND : -PER_SECOND // 4]
    rate = (len(middle) - 1) / (middle[-1] - middle[0])
    return [
        Row(
            "broadcasts",
            f"over a channel of {PER_SECOND}/s",
            f"{rate:.1f}/s",
            f"within {TOLERANCE:.0%}",
            abs(rate / PER_SECOND - 1) <= TOLERANCE,
        )
    ]


def _watch(site: Site, provider: Provider, seconds: int) -> tuple[int, list[Row]]:
    """Returns how many contacts a broadcast reaches in `seconds`, and rows about the bytes written.

    The bytes, per contact, are counted after all contacts have been chosen.
    """
    caller, before = Caller(site.stack.base_url, site.workspace, site.token), provider.count()
    broadcast_id = _send(caller, REGULAR)
    began = time.monotonic()
    _until(lambda: bool(site.query(f"SELECT 1 FROM broadcasts WHERE id = '{broadcast_id}' AND reached IS NULL")))
    chosen, first = provider.count(), written(site)
    time.sleep(max(1, seconds - (time.monotonic() - began)))
    last, sent = written(site), provider.count()
    caller.apply("POST", f"broadcasts/{broadcast_id}/abort")
    return sent - before, growth("broadcasts", "contact", first, last, sent - chosen)


def _send(caller: Caller, condition: dict[str, str], **fields: str) -> str:
    text = "Hello {{ contact.first_name }}, everything is half the price until Sunday."
    body = {"name": "Sale", "filter": condition, "message": {"text": text}, **fields}
    return str(caller.apply("POST", "broadcasts", body).data["id"])


def _answer(site: Site, caller: Caller, number: int) -> float:
    """Returns the milliseconds from a request to write to a contact until the message is sent.

    Takes at least a second, so that one request is made each second.
    """
    began = time.monotonic()
    query = f"SELECT contact_id FROM conversations WHERE peer = '{number + 1}' LIMIT 1"
    [(contact_id,)] = site.query(query)
    asked = time.monotonic()
    body = {"contact_id": contact_id, "text": f"For you {number}"}
    message_id = caller.call("POST", "messages", body).data["resource"]["id"]
    sent = f"SELECT 1 FROM messages WHERE id = '{message_id}' AND status = 'sent'"
    _until(lambda: bool(site.query(sent)))
    seconds = time.monotonic() - asked
    time.sleep(max(0, 1 - (time.monotonic() - began)))
    return 1000 * seconds


def _channel(site: Site, number: int) -> str:
    return connect(site.stack, site.workspace, "whatsapp", WHATSAPP, {"phone_number_id": str(number)})


def _seed(site: Site, size: Size, channels: list[str]) -> None:
    ids = {name: typeid(name, "(1790000000000 + n)", "n") for name in ("con", "cnv")}
    with site.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        made = {"workspace": site.workspace, "contacts": size.contacts, "paced": size.paced}
        cursor.execute(_CONTACTS.format(id=ids["con"], segment_size=SEGMENT_SIZE, **made))
        cursor.execute(OPEN_SEGMENTS)
        talks = _TALKS.format(id=ids["cnv"], workspace=site.workspace, paced=channels[-1], channels=CHANNELS)
        cursor.execute(talks, (channels[:CHANNELS],))
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE contacts, contact_segments, conversations")


def _until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > ends:
            raise BenchError(f"It did not come to that within {PATIENCE_SECONDS} seconds.")
        time.sleep(0.005)
