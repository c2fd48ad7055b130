"""Streams that begin at a place far back, made up or real: live updates of another workspace meanwhile."""

from __future__ import annotations

import time
from collections import Counter

import psycopg2

from tests.doors.services import service, tenant
from tests.doors.streams import PROCESSES, Tell, cookie, insert, listener, visitor
from tests.doors.victims import victim
from tests.listening import Ear

STREAMS, MADE_UP = 150, "1:1:;1:1:;{}"
MEMBERS, STREAMS_OF_EACH, MISSED, KINDS_OF_PLACES = 3, 10, 4_500, 5
SECONDS = 15.0


def measure(tell: Tell) -> None:
    with service(PROCESSES) as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim")
        token = visitor(attacker)
        cookies = [cookie(stack, attacker.workspace_id, f"{number}@example.com") for number in range(MEMBERS)]
        members = [Ear(stack.realtime_port, headers={"Cookie": each}) for each in cookies]
        places: list[list[str]] = [[] for _ in members]
        connection = psycopg2.connect(stack.postgres.url)
        connection.autocommit = True
        # Several places for each, so that no two streams can share the work.
        for _ in range(KINDS_OF_PLACES):
            insert(connection, attacker.workspace_id, 1)
            for ear, theirs in zip(members, places, strict=True):
                ear.place = ""
                theirs.append(ear.open().until_placed().place)
                ear.close()
        for _ in range(MISSED // 100):
            insert(connection, attacker.workspace_id, 100)
        made_up = [
            Ear(stack.realtime_port, "/live/chat", {"Authorization": f"Bearer {token}"}, MADE_UP.format(number))
            for number in range(STREAMS)
        ]
        real = [
            Ear(stack.realtime_port, headers={"Cookie": each}, place=theirs[number % KINDS_OF_PLACES])
            for each, theirs in zip(cookies, places, strict=True)
            for number in range(STREAMS_OF_EACH)
        ]
        with listener(stack, other) as hear:
            for name, ears in ((f"{STREAMS} made-up places of a visitor", made_up), ("real places of members", real)):
                with victim(hear) as member:
                    heard = attack(ears)
                tell(f"{len(ears)} streams, {name}: {heard}")
                tell(f"live update of another workspace: {member}")
                member.check()
        connection.close()


def attack(ears: list[Ear]) -> dict[str, int]:
    """Opens all streams and listens for a while; how many got which answer, and events of which kind."""
    found = Counter[str]()
    for ear in ears:
        ear.open()
        found[f"status {ear.status}"] += 1
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        for ear in ears:
            ear.listen()
    for ear in ears:
        found.update(each.kind for each in ear.heard)
        ear.close()
    return dict(found)
