"""What raises the status of a message, and who may send it again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from app.domain.conversations import message_statuses
from app.domain.conversations.message_statuses import Status
from app.models.conversations import Message

ROOT = Path(__file__).parents[4]


def sent(status: str) -> Message:
    return Message(direction="out", status=status)


@pytest.mark.parametrize(
    ("status", "receipt", "may"),
    [
        ("unknown", "sent", True),
        ("unknown", "failed", True),
        ("failed", "delivered", True),
        ("delivered", "failed", False),
        ("read", "delivered", False),
        ("sent", "sent", False),
    ],
)
def test_a_status_only_rises(status: str, receipt: str, may: bool) -> None:
    assert message_statuses.may_rise(sent(status), receipt) is may


def test_what_a_contact_wrote_never_rises() -> None:
    assert not message_statuses.may_rise(Message(direction="in", status="received"), "read")


def test_only_what_failed_or_is_unknown_may_be_sent_again() -> None:
    statuses = [status for status in get_args(Status) if message_statuses.may_be_sent_again(sent(status))]

    assert statuses == ["failed", "unknown"]


def test_no_other_module_makes_a_message_unknown() -> None:
    code = [path for folder in ("app/domain", "app/sql", "workers") for path in (ROOT / folder).rglob("*.*")]
    naming = [
        path.name
        for path in code
        if path.suffix in (".py", ".sql") and re.search("""['"]unknown['"]""", path.read_text())
    ]

    assert naming == ["message_statuses.py"]
