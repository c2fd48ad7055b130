"""Runs that ask: the reply is checked, and the question repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.config import settings
from app.database import rows
from app.domain.automations.steps.ask import READERS
from app.domain.channels import media
from app.models.runs import Run
from tests.app.domain.automations.talking_runs.steps import REMIND, log_of, sent, time_passes
from tests.cast import all_of, one
from tests.talks import close, make_member, receive, write

ASK: dict[str, Any] = {
    **{"id": "guests", "kind": "ask", "text": "How many?", "format": "number", "retry_text": "A number, please."},
    **{"attempts": 2, "save_as": "number", "timeout_seconds": 60, "otherwise": [REMIND]},
}
MARK = {"id": "mark", "kind": "set_field", "field": "guests", "value": "{{ steps.number }}/{{ steps.guests.attempts }}"}


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Where files are kept."""
    monkeypatch.setenv("MEDIA_DIR", str(tmp_path))
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def marked() -> Any:
    return one("SELECT custom_fields->>'guests' FROM contacts")


def test_the_run_goes_on_with_a_reply_of_the_right_format(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(ASK, MARK)
    work()
    assert (Run.get_by_id(run_id).status, sent()) == ("waiting", ["How many?"])

    reply = receive(workspace_id, contact_id, channel_id, " 4 ")
    work()

    run = Run.get_by_id(run_id)
    assert (run.status, marked(), sent()) == ("completed", "4/1", ["How many?"])
    assert run.saved["guests"] | {"at": None} == {
        **{"value": 4, "text": " 4 ", "button_id": None, "message_id": reply.id, "at": None, "attempts": 1},
        "timed_out": False,
    }
    assert log_of(run_id) == [("guests", "waiting"), ("guests", "succeeded"), ("mark", "succeeded")]


def test_it_asks_again_and_goes_on_with_the_next_reply(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    start(ASK, MARK)
    work()

    for text in ("four", "4,5"):
        receive(workspace_id, contact_id, channel_id, text)
        work()

    assert (sent(), marked()) == (["How many?", "A number, please."], "4.5/2")


def test_an_answer_with_two_readings_is_asked_again_with_both(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    start(ASK, MARK)
    work()

    for text in ("1.000", "1 000"):
        receive(workspace_id, contact_id, channel_id, text)
        work()

    assert (sent(), marked()) == (["How many?", "A number, please.\n(1000 / 1?)"], "1000/2")


def test_the_language_of_the_contact_decides_between_two_readings(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    rows("UPDATE contacts SET locale = 'de-AT'")
    start(ASK, MARK)
    work()

    receive(workspace_id, contact_id, channel_id, "1.000")
    work()

    assert (sent(), marked()) == (["How many?"], "1000/1")


def test_after_the_last_attempt_comes_otherwise(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(ASK, MARK)
    work()

    for text in ("four", "many"):
        receive(workspace_id, contact_id, channel_id, text)
        work()

    assert sent() == ["How many?", "A number, please.", "Are you there?"]
    assert (Run.get_by_id(run_id).saved["guests"], marked()) == ({"attempts": 2, "timed_out": False}, "/2")


def test_after_the_timeout_comes_otherwise(
    channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(ASK)
    work()

    time_passes()
    work()

    assert sent() == ["How many?", "Are you there?"]
    assert Run.get_by_id(run_id).saved["guests"] == {"attempts": 1, "timed_out": True}


def test_a_member_holds_the_question_back_and_its_repetition(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    receive(workspace_id, contact_id, channel_id, "Hello")
    start(ASK, MARK)
    work()
    write(workspace_id, contact_id, make_member(workspace_id), "May I help?")
    receive(workspace_id, contact_id, channel_id, "four")
    work()
    assert sent() == ["How many?", "May I help?"]

    close(workspace_id, contact_id)
    work()
    receive(workspace_id, contact_id, channel_id, "4")
    work()

    assert (sent(), marked()) == (["How many?", "May I help?", "How many?"], "4/1")


def test_a_contact_that_opts_out_is_not_asked_again(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(ASK)
    work()
    receive(workspace_id, contact_id, channel_id, "no more")
    rows("UPDATE contacts SET opted_out = true")

    work()

    assert (Run.get_by_id(run_id).failure["code"], sent()) == ("opted_out", ["How many?"])


def test_a_question_comes_with_its_file_and_is_repeated_without(
    workspace_id: str,
    contact_id: str,
    channel_id: str,
    start: Callable[..., str],
    work: Callable[[], None],
    directory: object,
) -> None:
    run_id = start(ASK | {"attachments": [{"address": "https://shop.example/{{ contact.id }}.pdf"}]}, MARK)
    work()
    assert (Run.get_by_id(run_id).waits_for, Run.get_by_id(run_id).status, sent()) == ("file", "waiting", [])

    media.keep(one("SELECT id FROM uploads"), b"%PDF-1.7")
    rows("UPDATE runs SET resume_at = now()")
    time_passes()
    work()
    for text in ("four", "4"):
        receive(workspace_id, contact_id, channel_id, text)
        work()

    assert (sent(), marked()) == (["How many?", "A number, please."], "4/2")
    files = all_of("SELECT json_array_length(attachments) FROM messages WHERE direction = 'out' ORDER BY id")
    assert files == [1, 0]
    assert log_of(run_id)[:2] == [("guests", "waiting"), ("guests", "waiting")]


def test_without_its_file_a_question_is_not_asked(
    channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(ASK | {"attachments": [{"address": "https://shop.example/a.pdf"}]})
    work()

    rows("UPDATE uploads SET due_at = NULL, problem = 'The server answered 404.'")
    time_passes()
    work()

    failure = Run.get_by_id(run_id).failure
    assert (failure["code"], failure["detail"]) == (
        "error",
        "The file 'a.pdf' could not be fetched: The server answered 404.",
    )
    assert sent() == []


CHOOSE: dict[str, Any] = {
    **{"id": "size", "kind": "ask", "text": "Which size?", "format": "choice", "retry_text": "Press one, please."},
    "buttons": [
        {"id": "s", "label": "Small"},
        {"id": "m", "label": "Medium {{ run.variables.more }}"},
        {"id": "2", "label": "Tiny"},
    ],
    **{"attempts": 2, "timeout_seconds": 60, "otherwise": [REMIND]},
}
KEEP = {"id": "keep", "kind": "set_field", "field": "size", "value": "{{ steps.size.value }}"}
LABELS = {"s": "Small", "m": "Medium size", "2": "Tiny"}


@pytest.mark.parametrize(
    ("text", "button_id", "chosen"),
    [
        ("Small", "s", "s"),
        ("Whatever the provider says", "s", "s"),
        ("Small", None, "s"),
        ("  sMALL ", None, "s"),
        ("medium size", None, "m"),
        ("M", None, "m"),
        ("1", None, "s"),
        ("3", None, "2"),
        ("2", None, "2"),
        ("Small", "of an earlier message", "s"),
        ("Large", None, None),
        ("Large", "l", None),
        ("", None, None),
    ],
)
def test_a_choice_is_pressed_or_typed(
    workspace_id: str,
    contact_id: str,
    channel_id: str,
    start: Callable[..., str],
    work: Callable[[], None],
    text: str,
    button_id: str | None,
    chosen: str | None,
) -> None:
    run_id = start({"id": "set", "kind": "set_variable", "name": "more", "value": "size"}, CHOOSE, KEEP)
    work()
    offered = one("SELECT buttons FROM messages WHERE direction = 'out'")
    assert [each["label"] for each in offered] == ["Small", "Medium size", "Tiny"]

    receive(workspace_id, contact_id, channel_id, text, button_id)
    work()

    run = Run.get_by_id(run_id)
    if chosen is None:
        assert (run.status, sent()) == ("waiting", ["Which size?", "Press one, please."])
        assert one("SELECT buttons FROM messages WHERE text LIKE 'Press%%'") == offered
    else:
        kept = one("SELECT custom_fields->>'size' FROM contacts")
        assert (run.status, kept, run.saved["size"]["button_id"]) == ("completed", LABELS[chosen], chosen)
        assert run.saved["size"]["text"] == text


def test_after_the_last_attempt_a_choice_comes_to_otherwise(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(CHOOSE | {"buttons": CHOOSE["buttons"][:1]}, KEEP)
    work()

    for text in ("Large", "2"):
        receive(workspace_id, contact_id, channel_id, text)
        work()

    assert sent() == ["Which size?", "Press one, please.", "Are you there?"]
    assert Run.get_by_id(run_id).saved["size"] == {"attempts": 2, "timed_out": False}
    told = one("SELECT detail->>'text' FROM run_steps WHERE step = 'size' ORDER BY number DESC LIMIT 1")
    assert told == "The reply was none of the buttons, 2 times."


def test_buttons_may_suggest_answers_of_other_formats(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    offered = [{"id": "two", "label": "2"}, {"id": "four", "label": "4"}]
    run_id = start(ASK | {"buttons": offered}, MARK)
    work()

    receive(workspace_id, contact_id, channel_id, "4", "four")
    work()

    assert (marked(), Run.get_by_id(run_id).saved["guests"]["button_id"]) == ("4/1", "four")


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        ("text", "Yes", "Yes"),
        ("text", "", None),
        ("number", "12", 12),
        ("number", "-3.50", -3.5),
        ("number", "1.000,5", 1000.5),
        ("number", "²", None),
        ("email", "Ada@Example.com", "Ada@example.com"),
        ("email", "ada", None),
        ("phone", "+49 30 123456", "+4930123456"),
        ("phone", "123", None),
        ("date", "2026-02-28", "2026-02-28"),
        ("date", "28.2.2026", "2026-02-28"),
        ("date", "30.2.2026", None),
        ("date", "tomorrow", None),
    ],
)
def test_replies_are_read(kind: str, reply: str, value: Any) -> None:
    try:
        found = READERS[kind](reply, None)
    except ValueError:
        found = None

    assert found == value
