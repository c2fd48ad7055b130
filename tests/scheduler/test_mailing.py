from __future__ import annotations

import threading

import peewee
import pytest
from structlog.testing import capture_logs

from app.config import settings
from app.domain.people import emails
from scheduler import mailing
from tests.cast import one, until
from tests.mail_server import MailServer
from tests.people import make_account

pytestmark = pytest.mark.usefixtures("empty")


def test_email_is_sent_beside_the_passes_until_the_scheduler_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    server, stopping = MailServer(), threading.Event()
    with monkeypatch.context() as patch:
        patch.setenv("SMTP_URL", server.url())
        settings.cache_clear()
        make_account()
        emails.arrange_reset("ada@example.com")
        thread = mailing.start(stopping)

        assert until(lambda: server.recipients) == ["ada@example.com"]
        assert until(lambda: one("SELECT count(*) = 0 FROM emails"))

        stopping.set()
        assert thread is not None
        thread.join(20)
        assert not thread.is_alive()
    settings.cache_clear()
    server.stop()


def test_without_a_server_there_is_nothing_to_do() -> None:
    assert mailing.start(threading.Event()) is None


@pytest.mark.parametrize(
    ("error", "event"),
    [(peewee.OperationalError("away"), "mailing.interrupted"), (RuntimeError("broken"), "mailing.failed")],
    ids=["database away", "broken"],
)
def test_a_failure_does_not_end_the_thread(monkeypatch: pytest.MonkeyPatch, error: Exception, event: str) -> None:
    def fail() -> int:
        raise error

    monkeypatch.setattr(emails, "send_due", fail)

    with capture_logs() as lines:
        assert mailing._send() == 0

    assert [line["event"] for line in lines] == [event]
