"""Stored secrets: everything encrypted under SECRET_KEY, and its re-encryption at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.fernet import InvalidToken

from app.config import settings
from app.database import rows, transaction
from app.lib import vault

PAGE = 500


@dataclass(frozen=True, slots=True)
class SecretColumn:
    """Where secrets are stored.

    `page` selects ids and ciphertexts. `locked` locks one row and selects its ciphertexts. `sample` selects the
    ciphertexts of a few rows at little cost, such as the oldest and the newest.
    """

    page: str
    locked: str
    store: str
    sample: str


def _in_table(table: str, columns: Sequence[str], current: str, condition: str) -> SecretColumn:
    """Returns the SecretColumn for the `columns` of a table.

    `current`: the columns, without secrets that are no longer used. `condition`: which rows the sample is of.
    """
    first = f"(SELECT id, {current} FROM {table} WHERE {condition} ORDER BY id {{}} LIMIT 1)"
    return SecretColumn(
        page=f"SELECT id, {', '.join(columns)} FROM {table} WHERE id > %s ORDER BY id LIMIT %s",
        locked=f"SELECT {', '.join(columns)} FROM {table} WHERE id = %s FOR NO KEY UPDATE",
        store=f"UPDATE {table} SET {', '.join(f'{name} = %s' for name in columns)} WHERE id = %s",
        sample=f"{first.format('ASC')} UNION ALL {first.format('DESC')}",
    )


_IN_JOB = "convert_to(payload ->> 'sealed_secret', 'UTF8')"

# Jobs come first: if a worker applies a job meanwhile, the secret is found in a later place.
PLACES = (
    SecretColumn(
        # Materialized, so that the indexes of queued and failed jobs are read, not the whole table.
        page=f"""
            WITH payloads AS MATERIALIZED (
                SELECT id, payload FROM jobs WHERE due_at IS NOT NULL
                UNION ALL SELECT id, payload FROM jobs WHERE status = 'failed' AND payload IS NOT NULL
            )
            SELECT id, {_IN_JOB} FROM payloads WHERE payload ->> 'sealed_secret' IS NOT NULL AND id > %s
            ORDER BY id LIMIT %s
            """,
        locked=f"SELECT {_IN_JOB} FROM jobs WHERE id = %s FOR NO KEY UPDATE",
        store="""
            UPDATE jobs
            SET payload = jsonb_set(payload::jsonb, '{sealed_secret}', to_jsonb(convert_from(%s, 'UTF8')))::json
            WHERE id = %s
            """,
        sample=f"""
            SELECT id, {_IN_JOB} FROM (
                SELECT id, payload FROM jobs WHERE due_at IS NOT NULL ORDER BY workspace_id, position LIMIT {PAGE}
            ) AS first
            WHERE payload ->> 'sealed_secret' IS NOT NULL
            """,
    ),
    _in_table(
        *("endpoints", ["secret", "previous_secret"]),
        "secret, CASE WHEN previous_secret_until > now() THEN previous_secret END",
        "state <> 'deleted'",
    ),
    _in_table("channels", ["credentials"], "credentials", "credentials IS NOT NULL"),
)

Sealed = list[bytes | None]


@dataclass(slots=True)
class Found:
    """How many secrets were re-encrypted or had the newest key, and the ids of unreadable rows."""

    reencrypted: int = 0
    already: int = 0
    unreadable: list[str] = field(default_factory=list)


def reencrypt() -> Found:
    """Re-encrypts every stored secret under the newest key. Safe to interrupt and to repeat.

    Locks and rereads each row that has to change in its own transaction, so that no concurrent change is lost. Never
    locks two rows at once, because workers may lock them in the opposite order.
    """
    found = Found()
    for place in PLACES:
        after = ""
        while page := rows(place.page, (after, PAGE)):
            for row_id, *columns in page:
                sealed, renewed = _renewed(columns)
                if renewed == sealed:
                    _count(found, row_id, sealed, renewed)
                else:
                    _reencrypt(place, row_id, found)
            after = page[-1][0]
    return found


def unreadable() -> str | None:
    """Returns the id of a row whose secret no key decrypts, or None. Looks only at each `sample`."""
    for place in PLACES:
        for row_id, *columns in rows(place.sample):
            sealed = [bytes(column) for column in columns if column is not None]
            if not all(vault.is_readable(settings().secret_keys, each) for each in sealed):
                return str(row_id)
    return None


def _reencrypt(place: SecretColumn, row_id: str, found: Found) -> None:
    with transaction():
        for columns in rows(place.locked, (row_id,)):
            sealed, renewed = _renewed(columns)
            if renewed != sealed:
                rows(place.store, (*renewed, row_id))
            _count(found, row_id, sealed, renewed)


def _renewed(columns: Sequence[memoryview | None]) -> tuple[Sealed, Sealed]:
    """Returns a row's ciphertexts, and their re-encrypted forms. Unreadable ones stay unchanged."""
    sealed = [None if column is None else bytes(column) for column in columns]
    return sealed, [each and _renew(each) for each in sealed]


def _renew(sealed: bytes) -> bytes:
    try:
        return vault.renew(settings().secret_keys, sealed)
    except InvalidToken:
        return sealed


def _count(found: Found, row_id: str, sealed: Sealed, renewed: Sealed) -> None:
    for before, after in zip(sealed, renewed, strict=True):
        if before != after:
            found.reencrypted += 1
        elif before is not None and vault.is_readable(settings().secret_keys[:1], before):
            found.already += 1
        elif before is not None and row_id not in found.unreadable[-1:]:
            found.unreadable.append(row_id)
