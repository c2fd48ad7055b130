"""Many deliveries at once: copies of an existing one, inserted as if they had a history."""

from __future__ import annotations

import psycopg2

from app.lib import ids
from tests.journeys.shops import Shop
from tests.stack.stack import Stack

# The past attempts of a copy in each state: (response status, error).
PASTS: dict[str, list[tuple[int, str | None]]] = {
    "held": [],
    "failed": [(500, "The receiver answered 500.")] * 2,
    "delivered": [(500, "The receiver answered 500."), (200, None)],
}


def make_copies(stack: Stack, shop: Shop, status: str, number: int, kind: str | None = None) -> list[str]:
    """Inserts more deliveries of the shop's first event in that state; returns their identifiers, oldest first."""
    made = sorted(ids.new("dlv") for _ in range(number))
    past = PASTS[status]
    with psycopg2.connect(stack.postgres.url) as connection, connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, contact_id, kind, status, due_at,
                attempts, tries, claim, last_error, delivered_at)
            SELECT made.id, workspace_id, event_id, endpoint_id, contact_id, coalesce(%s, kind), %s, NULL,
                %s, %s, %s, %s,
                CASE %s WHEN 'delivered' THEN now() END
            FROM (SELECT * FROM deliveries WHERE endpoint_id = %s ORDER BY id LIMIT 1) AS one
            CROSS JOIN unnest(%s::text[]) AS made(id)
            """,
            (
                *(kind, status, len(past), len(past), len(past), past[-1][1] if past else None),
                *(status, shop.endpoint_id, made),
            ),
        )
        for place, (code, error) in enumerate(past, 1):
            cursor.execute(
                "INSERT INTO attempts (delivery_id, workspace_id, number, at, duration_ms, status, error)"
                " SELECT id, %s, %s, now() - interval '1 hour', 1, %s, %s FROM unnest(%s::text[]) AS made(id)",
                (shop.workspace_id, place, code, error, made),
            )
    connection.close()
    return made
