"""People for tests: accounts with a password, members, staff, and what they send."""

from __future__ import annotations

from app.domain.people import members, sessions
from app.domain.people.sessions import Signed
from app.lib import ids
from app.models.accounts import Account
from app.models.members import Member

PASSWORD = "correct horse battery"
# Of PASSWORD; made once, as a hash takes a tenth of a second.
_HASH = "$argon2id$v=19$m=65536,t=3,p=4$q3DxUzSRhqKS4QjfeH0Vdg$0XEi+2yKlVUjSsfNSFaQ6idi4JxqlphunRHKmlszRH8"
ADDRESS = "203.0.113.7"


def make_account(email: str = "ada@example.com", is_support: bool = False, has_password: bool = True) -> Account:
    """Somebody who can sign in with PASSWORD."""
    account = Account(
        id=ids.new("acc"), email=email, password_hash=_HASH if has_password else None, is_support=is_support
    )
    Account.insert(account.__data__).execute()
    return account


def make_member(workspace_id: str, email: str = "ada@example.com", role: str = "owner") -> tuple[Account, Member]:
    """A member of the workspace who can sign in with PASSWORD."""
    account = make_account(email)
    return account, members.add(workspace_id, account.id, role)


def signed_in(account: Account) -> str:
    """The token of a new session of the account."""
    return sessions.begin(account.id, ADDRESS, "Firefox")


def signed(account: Account) -> Signed:
    """A new session of the account."""
    found = sessions.find(signed_in(account))
    assert found is not None
    return found
