"""People who look at pages: members of a workspace and support staff, each with a browser of their own."""

from __future__ import annotations

import html
import re
import uuid
from dataclasses import dataclass
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.domain.people import sessions
from app.models.accounts import Account
from tests import people


@dataclass(frozen=True)
class Person:
    """Somebody who has signed in. Paths are relative to the workspace, unless they begin with '/'."""

    client: FlaskClient
    workspace_id: str
    account_id: str
    email: str

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.client.get(self.path(path), **options)

    def page(self, path: str) -> str:
        """The text of the page, which must be there."""
        response = self.get(path)
        assert response.status_code == 200, response.text
        return html.unescape(response.text)

    def post(self, path: str, fields: dict[str, Any] | None = None, **options: Any) -> TestResponse:
        """Sends a form as the page does: with the CSRF token, and a key of its own unless `once` is given."""
        sent = {"csrf_token": self.csrf_token(), "once": str(uuid.uuid4())} | (fields or {})
        return self.client.post(self.path(path), data=sent, **options)

    def csrf_token(self) -> str:
        found = re.search(r'name="csrf_token" value="([^"]+)"', self.client.get("/workspaces").text)
        assert found
        return found[1]

    def path(self, path: str) -> str:
        return path if path.startswith("/") else f"/workspaces/{self.workspace_id}/{path}"

    def visit(self) -> None:
        """Begins a visit of the workspace, for staff."""
        answer = self.post("visit/begin", {"reason": "The customer's receiver was away", "ticket": "T-1", "next": "/"})
        assert answer.status_code == 303


def member(app: Flask, workspace_id: str, role: str = "owner", email: str | None = None) -> Person:
    """A signed-in member of the workspace."""
    account, _ = people.make_member(workspace_id, email or f"{role}@shop.example", role)
    return _signed_in(app, workspace_id, account)


def supporter(app: Flask, workspace_id: str, email: str = "support@bellhop.example") -> Person:
    """A signed-in member of staff, who belongs to no workspace; paths are relative to the one given."""
    return _signed_in(app, workspace_id, people.make_account(email, is_support=True))


def anew(app: Flask, person: Person) -> Person:
    """The same person, signed in with another browser."""
    return _signed_in(app, person.workspace_id, Account.get_by_id(person.account_id))


def _signed_in(app: Flask, workspace_id: str, account: Account) -> Person:
    client = app.extensions["pages"].test_client()
    with client.session_transaction() as session:
        session["_user_id"] = sessions.begin(account.id, "127.0.0.1", "tests")
    return Person(client, workspace_id, account.id, account.email)
