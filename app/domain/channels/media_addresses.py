"""Addresses of media: where the files of messages are served, without a token."""

from __future__ import annotations

import hmac
from hashlib import sha256

from app.config import settings
from app.lib import keys


def address_of(upload_id: str) -> str:
    """Returns the address at which the file is served. It cannot be guessed, and needs no token."""
    return f"{settings().base_url}/media/{upload_id}/{_proofs(upload_id)[0]}"


def is_proof(upload_id: str, proof: str) -> bool:
    """Returns whether an address of the file ends with `proof`."""
    return any(hmac.compare_digest(proof.encode(), each.encode()) for each in _proofs(upload_id))


def _proofs(upload_id: str) -> list[str]:
    """Returns the unguessable part of the file's address, for each key in SECRET_KEY, newest first."""
    return [
        hmac.digest(keys.derived(secret, "media"), upload_id.encode(), sha256).hex()[:32]
        for secret in settings().secret_keys
    ]
