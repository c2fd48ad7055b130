from __future__ import annotations

import pytest
from cryptography.fernet import Fernet, InvalidToken

from app.lib import vault

OLD, NEW = Fernet.generate_key(), Fernet.generate_key()


def test_what_was_encrypted_can_be_read() -> None:
    assert vault.decrypt((NEW,), vault.encrypt((NEW,), "whsec_ä")) == "whsec_ä"


def test_the_same_secret_looks_different_each_time() -> None:
    assert vault.encrypt((NEW,), "whsec_a") != vault.encrypt((NEW,), "whsec_a")


def test_an_older_key_still_reads() -> None:
    assert vault.decrypt((NEW, OLD), vault.encrypt((OLD,), "whsec_a")) == "whsec_a"


def test_the_newest_key_encrypts() -> None:
    assert vault.decrypt((NEW,), vault.encrypt((NEW, OLD), "whsec_a")) == "whsec_a"


@pytest.mark.parametrize(
    "sealed", [b"", b"nonsense", vault.encrypt((OLD,), "whsec_a")], ids=["empty", "nonsense", "other key"]
)
def test_what_no_key_made_cannot_be_read(sealed: bytes) -> None:
    with pytest.raises(InvalidToken):
        vault.decrypt((NEW,), sealed)


def test_a_secret_is_renewed_under_the_newest_key_and_keeps_its_time() -> None:
    before = vault.encrypt((OLD,), "whsec_a")

    after = vault.renew((NEW, OLD), before)

    assert vault.decrypt((NEW,), after) == "whsec_a"
    assert Fernet(NEW).extract_timestamp(after) == Fernet(OLD).extract_timestamp(before)


def test_what_is_under_the_newest_key_is_not_renewed() -> None:
    sealed = vault.encrypt((NEW,), "whsec_a")

    assert vault.is_readable((NEW, OLD), sealed)
    assert vault.renew((NEW, OLD), sealed) == sealed


def test_what_no_key_made_cannot_be_renewed() -> None:
    sealed = vault.encrypt((OLD,), "whsec_a")

    assert not vault.is_readable((NEW,), sealed)
    with pytest.raises(InvalidToken):
        vault.renew((NEW,), sealed)
