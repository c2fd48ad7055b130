"""`python -m bench.cookies EMAIL…` signs accounts in, and prints the cookie of each on a line."""

import sys

from flask import Flask
from flask.sessions import SecureCookieSessionInterface

from app import database
from app.domain.people import sessions
from app.models.accounts import Account
from app.serving import cookies


def main(emails: list[str]) -> None:
    database.connect()
    pages = Flask(__name__, static_folder=None)
    pages.config.update(cookies.configuration())
    serializer = SecureCookieSessionInterface().get_signing_serializer(pages)
    assert serializer is not None
    accounts = {account.email: account.id for account in Account.select().where(Account.email.in_(emails))}
    for email in emails:
        token = sessions.begin(accounts[email], "127.0.0.1", "bench")
        print(f"{pages.config['SESSION_COOKIE_NAME']}={serializer.dumps({'_user_id': token})}")


if __name__ == "__main__":
    main(sys.argv[1:])
