"""Deltas: rows in which transactions note changes to counts, until the scheduler adds them up.

The counts of `name` are in `<name>_counts (owner, key, amount)`, their deltas in `<name>_deltas (id, owner, key,
amount)`. Both also have the owner's `workspace_id`. Transactions only append deltas, so that no two wait for each
other's counts.
"""

from __future__ import annotations

from app.database import count, rows, transaction


def fold(name: str, owner: str, limit: int) -> int:
    """Adds up to `limit` deltas to the counts; returns how many. Safe to run concurrently.

    Deletes counts that reach zero. `owner`: the column that names the owner of a count.
    """
    # `max` ignores nulls: during an update, processes of the earlier version write deltas without `workspace_id`.
    further = ("", "") if owner == "workspace_id" else (", workspace_id", ", max(workspace_id)")
    with transaction():
        query = _FOLD.format(name=name, owner=owner, columns=owner + further[0], values=owner + further[1])
        [(folded, emptied)] = rows(query, {"limit": limit})
        if emptied:
            pairs = tuple(tuple(each) for each in emptied)
            count(f"DELETE FROM {name}_counts WHERE ({owner}, key) IN %s AND amount = 0", (pairs,))
    return int(folded)


# Ordered by owner and key, so that two schedulers that change the same counts do not deadlock.
_FOLD = """
    WITH taken AS (
        DELETE FROM {name}_deltas
        WHERE id = ANY(ARRAY(SELECT id FROM {name}_deltas ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
        RETURNING {columns}, key, amount
    ), added AS (
        INSERT INTO {name}_counts ({columns}, key, amount)
        SELECT {values}, key, sum(amount) FROM taken GROUP BY {owner}, key HAVING sum(amount) <> 0 ORDER BY {owner}, key
        ON CONFLICT ({owner}, key) DO UPDATE SET amount = {name}_counts.amount + excluded.amount
        RETURNING {owner}, key, amount
    )
    SELECT (SELECT count(*) FROM taken),
        (SELECT json_agg(json_build_array({owner}, key)) FROM added WHERE amount = 0)
"""
