"""A bare Flask view with psycopg2: the peer for accepting writes and for reading a contact."""

import json
import os
import threading
from typing import Any

import psycopg2
from flask import Flask, request

CONTACT = (
    "id, external_id, email, phone, first_name, last_name, locale, timezone, tags, custom_fields, opted_out,"
    " created_at, updated_at"
)
TABLE = "CREATE TABLE IF NOT EXISTS bare (id bigserial PRIMARY KEY, body jsonb NOT NULL)"


def create_app() -> Flask:
    """Returns an application whose views run one statement on one row, with a connection per thread."""
    app = Flask(__name__)
    own = threading.local()

    def connection() -> Any:
        if not hasattr(own, "connection"):
            own.connection = psycopg2.connect(os.environ["DATABASE_URL"])
            own.connection.autocommit = True
        return own.connection

    @app.post("/bare")
    def insert() -> tuple[dict[str, int], int]:
        body = json.dumps(request.get_json())
        with connection().cursor() as cursor:
            cursor.execute("INSERT INTO bare (body) VALUES (%s) RETURNING id", (body,))
            return {"id": cursor.fetchone()[0]}, 202

    @app.get("/bare/<contact_id>")
    def select(contact_id: str) -> dict[str, Any]:
        with connection().cursor() as cursor:
            cursor.execute(f"SELECT {CONTACT} FROM contacts WHERE id = %s", (contact_id,))
            return dict(zip((column.name for column in cursor.description), cursor.fetchone(), strict=True))

    return app
