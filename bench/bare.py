"""What Flask and psycopg2 do at their barest: the peer of accepting a write. Takes the same requests."""

import json
import os
import threading
from typing import Any

import psycopg2
from flask import Flask, request

TABLE = "CREATE TABLE IF NOT EXISTS bare (id bigserial PRIMARY KEY, body jsonb NOT NULL)"


def create_app() -> Flask:
    """One view, one row, one connection a thread."""
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

    return app
