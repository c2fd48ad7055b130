"""Files of a step's message: asked for, waited for, and sent with it; or the run fails and says why."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.config import settings
from app.database import rows
from app.domain.automations.steps.base import Done, StepFailed, Wait
from app.domain.channels import fetches, media
from app.models.conversations import Message
from app.models.runs import Run
from app.models.uploads import Upload
from tests.app.domain.automations.steps.moments import begin
from tests.cast import all_of, one, rung_on
from tests.talks import receive
from tests.wires import WIRE

PDF = b"%PDF-1.7 bill"
BILL = {"text": "Your bill", "attachments": [{"address": "https://shop.example/bills/{number}%20A.pdf?key=1"}]}
SEVEN = {"variables": {"number": 7}}


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("MEDIA_DIR", str(tmp_path))
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def failing(run_id: str, fields: dict[str, Any], **options: Any) -> tuple[str, str]:
    """The code and sentence with which the step fails."""
    with pytest.raises(StepFailed) as failure:
        begin(run_id, "send_message", fields, **(SEVEN | options))
    return failure.value.code, failure.value.text


def give_up(problem: str) -> None:
    rows("UPDATE uploads SET due_at = NULL, source = NULL, problem = %s", (problem,))


@pytest.mark.parametrize("kind", ["send_message", "ask"])
def test_the_message_waits_for_its_file_and_is_sent_with_it(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str, kind: str
) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id

    waits = begin(run_id, kind, BILL, **SEVEN)

    assert isinstance(waits, Wait)
    assert (waits.waits_for, waits.input) == (
        "file",
        {"attachments": ["https://shop.example/bills/7%20A.pdf?key=1"]},
    )
    assert waits.until == one("SELECT expires_at FROM uploads") - timedelta(hours=media.KEPT_HOURS, seconds=-300)
    assert rung_on("fetches") == [channel_id]
    assert Run.get_by_id(run_id).conversation_id == conversation_id
    upload = Upload.get()
    assert (upload.channel_id, upload.run_id, upload.name) == (channel_id, run_id, "7 A.pdf")
    assert isinstance(begin(run_id, kind, BILL, **SEVEN), Wait)
    assert one("SELECT count(*) FROM messages WHERE direction = 'out'") == 0

    media.keep(upload.id, PDF)
    outcome = begin(run_id, kind, BILL, **SEVEN)

    assert isinstance(outcome, Done if kind == "send_message" else Wait)
    [message] = Message.select().where(Message.direction == "out")
    assert [(each["id"], each["bytes"]) for each in message.attachments] == [(upload.id, len(PDF))]
    assert media.load(upload.id).content == PDF
    assert (Upload.get().message_id, Upload.get().expires_at) == (message.id, None)


def test_a_step_that_is_taken_again_fetches_again(channel_id: str, run_id: str) -> None:
    for number in range(2):
        assert isinstance(begin(run_id, "send_message", BILL, **SEVEN), Wait)
        media.keep(one("SELECT id FROM uploads WHERE file IS NULL"), PDF)
        outcome = begin(run_id, "send_message", BILL, **SEVEN)
        assert isinstance(outcome, Done)
        rows("UPDATE runs SET saved = %s", ('{"step": {}}',))
        assert outcome.saved == {"step": {}}
        assert one("SELECT count(*) FROM uploads") == number + 1


def test_a_file_that_is_given_up_fails_the_run(channel_id: str, run_id: str) -> None:
    begin(run_id, "send_message", BILL, **SEVEN)
    give_up("The server answered 404.")

    assert failing(run_id, BILL) == ("error", "The file '7 A.pdf' could not be fetched: The server answered 404.")
    assert one("SELECT count(*) FROM messages") == 0


def test_a_file_that_does_not_come_in_time_fails_the_run(channel_id: str, run_id: str) -> None:
    begin(run_id, "send_message", BILL, **SEVEN)
    rows("UPDATE runs SET saved = jsonb_set(saved::jsonb, '{step,until}', '\"2026-01-01T00:00:00.000Z\"')::json")

    assert failing(run_id, BILL) == ("error", "The files did not come within 5 minutes: no answer came")


def test_a_file_that_has_expired_is_fetched_again(channel_id: str, run_id: str) -> None:
    begin(run_id, "send_message", BILL, **SEVEN)
    media.keep(one("SELECT id FROM uploads"), PDF)
    rows("UPDATE uploads SET expires_at = now() - interval '1 second'")

    assert isinstance(begin(run_id, "send_message", BILL, **SEVEN), Wait)
    assert one("SELECT count(*) FROM uploads") == 2


def test_the_file_of_another_run_is_not_taken(workspace_id: str, channel_id: str, run_id: str) -> None:
    begin(run_id, "send_message", BILL, **SEVEN)
    media.keep(one("SELECT id FROM uploads"), PDF)
    rows("UPDATE uploads SET run_id = 'run_of_others'")

    assert isinstance(begin(run_id, "send_message", BILL, **SEVEN), Wait)


def test_more_files_than_the_channel_takes_are_not_fetched(channel_id: str, run_id: str) -> None:
    two = {"attachments": BILL["attachments"] * 2}  # type: ignore[operator]

    assert failing(run_id, BILL | two) == ("error", "On this channel a message has at most one file.")
    assert all_of("SELECT id FROM uploads") == []


def test_a_text_that_is_too_long_beside_a_file_fails_the_run(
    channel_id: str, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "most_caption", 3)
    begin(run_id, "send_message", BILL, **SEVEN)
    media.keep(one("SELECT id FROM uploads"), PDF)

    assert failing(run_id, BILL)[0] == "template"
    assert Upload.get().message_id is None


@pytest.mark.parametrize("is_simulated", [False, True])
@pytest.mark.parametrize(
    "address", ["http://shop.example/{number}", "https://10.0.0.1/{number}", "https://u@x.example/"]
)
def test_an_address_that_must_not_be_called_fails_the_run(
    channel_id: str, run_id: str, address: str, *, is_simulated: bool
) -> None:
    code, text = failing(run_id, BILL | {"attachments": [{"address": address}]}, is_simulated=is_simulated)

    assert (code, text[:27]) == ("error", "The file cannot be fetched.")


def test_a_simulation_shows_the_address_and_fetches_nothing(run_id: str) -> None:
    outcome = begin(run_id, "send_message", BILL, is_simulated=True, **SEVEN)

    assert isinstance(outcome, Done)
    assert outcome.input["attachments"] == [{"address": "https://shop.example/bills/7%20A.pdf?key=1"}]
    assert one("SELECT count(*) FROM uploads") == 0


def test_the_mail_of_files_knows_the_run(channel_id: str, run_id: str) -> None:
    begin(run_id, "send_message", BILL, **SEVEN)

    [dispatch] = fetches.claim({channel_id: 5}).dispatches

    assert dispatch.located is not None
    assert (dispatch.located.method, dispatch.located.address) == ("GET", "https://shop.example/bills/7%20A.pdf?key=1")
