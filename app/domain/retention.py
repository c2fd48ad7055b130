"""Retention: the old rows that the scheduler deletes, and when a row is old.

Runs, replays, broadcasts and live updates take more than one statement, so their own modules delete them.
`app/partitions.py` drops the partitions of large tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app.config import settings
from app.database import delete_some
from app.domain.automations import counts
from app.domain.automations.editing import clipboards
from app.domain.channels import arrivals
from app.domain.insight import figures, refused_requests
from app.domain.jobs import idempotency_keys
from app.domain.reports import counting
from app.lib import clock, ids

_HISTORY = "now() - %(history)s"  # HISTORY_RETENTION_DAYS ago
_FIGURES = f"now() - interval '{figures.KEPT.days} days'"
_INBOX = f"now() - interval '{counting.KEPT.days} days'"
_COUNTED = f"(SELECT counted_until FROM inbox_figure_progress) - interval '{counting.CLOSED_KEPT.days} days'"
_BILLED = "(SELECT date_trunc('month', counted_until)::date FROM usage_progress WHERE meter = 'active_contacts')"


@dataclass(frozen=True, slots=True)
class Old:
    """The rows of `table` whose column `at` is less than `before`, and for which `also` holds.

    `name`: the pass that deletes the rows. `before` and `also` are SQL with the parameters of `_values`. `most`: how
    many rows one statement deletes.
    """

    name: str
    table: str
    at: str
    before: str = _HISTORY
    also: str = "true"
    most: int = 10_000


OLD = (
    Old("old_idempotency_keys", "idempotency_keys", "created_at", f"now() - interval '{idempotency_keys.KEPT}'"),
    # Arrivals that were given up are kept as long as bodies.
    Old(
        *("old_arrivals", "arrivals", "created_at", f"now() - interval '{arrivals.KEYS_KEPT_DAYS} days'"),
        "due_at IS NULL AND next_attempt_at IS NULL AND (problem IS NULL OR created_at < now() - %(bodies)s)",
        most=5_000,
    ),
    # Only a few, because an import may have thousands of errors, which are deleted with it.
    Old("old_imports", "imports", "created_at", also="finished_at IS NOT NULL", most=100),
    Old("old_refused_requests", "refused_requests", "id", "%(refusal)s"),
    Old("old_sweeps", "sweeps", "finished_at"),
    Old("old_selections", "selections", "finished_at", most=1_000),
    Old("old_step_clipboards", "step_clipboards", "updated_at", f"now() - interval '{clipboards.KEPT_DAYS} days'"),
    *(Old("old_counts", "run_counts", "starts_at", f"%({each})s", f"grain = '{each}'") for each in ("hour", "day")),
    Old("contacts_counted", "active_contacts", "month", _BILLED),
    Old("old_notifications", "notifications", "id", "%(notification)s", most=1_000),
    Old("old_sessions", "sessions", "expires_at", "%(now)s", most=1_000),
    Old("old_sign_in_failures", "sign_in_failures", "ends_at", "%(now)s"),
    Old("old_stored_bytes", "stored_bytes", "ends_at", "now()"),
    Old("old_password_links", "password_links", "expires_at", "%(now)s", most=1_000),
    Old("old_figures", "failure_groups", "last_seen_at", _FIGURES),
    *(Old("old_figures", table, "starts_at", _FIGURES) for table in figures.TABLES),
    Old("old_figures_of_inbox", "inbox_figures", "starts_at", _INBOX),
    Old("old_figures_of_inbox", "inbox_figure_values", "month", _INBOX),
    Old("old_figures_of_inbox", "conversation_openings", "closed_at", _COUNTED),
)
PASSES = list(dict.fromkeys(each.name for each in OLD))


def delete_old(name: str, most: int | None = None) -> int:
    """Deletes the old rows of the pass `name`, up to `most` of each table; returns how many.

    If `most` is None, the numbers in OLD apply. Safe to run concurrently.
    """
    values = _values()
    return sum(
        delete_some(each.table, f"{each.at} < {each.before} AND {each.also}", each.at, values, most or each.most)
        for each in OLD
        if each.name == name
    )


def _values() -> dict[str, Any]:
    now, history = clock.now(), timedelta(days=settings().history_retention_days)
    return {
        "now": now,
        "history": history,
        "bodies": timedelta(days=max(arrivals.KEYS_KEPT_DAYS, settings().body_retention_days)),
        "notification": ids.bound("ntf", now - history),
        "refusal": ids.bound("ref", now - refused_requests.KEPT),
        **counts.kept(),
    }
