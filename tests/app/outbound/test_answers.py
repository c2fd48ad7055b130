"""Answers, and the sentences that are made from their codes."""

from __future__ import annotations

import pytest

from app.outbound.answers import Reason, answered, failed, sentence_without_target


@pytest.mark.parametrize(
    ("status", "code", "sentence"),
    [
        (200, None, None),
        (204, None, None),
        (301, "redirect", "Redirects are not followed (301)."),
        (404, "status", "The server answered 404 (Not Found)."),
        (410, "gone", "The server answered 410 (Gone)."),
        (599, "status", "The server answered 599."),
        (101, "status", "The server answered 101 (Switching Protocols)."),
    ],
)
def test_a_status_decides_the_code_and_the_sentence(status: int, code: str | None, sentence: str | None) -> None:
    answer = answered(status)
    assert (answer.ok, answer.error_code, answer.error) == (code is None, code, sentence)
    assert not answer.is_ours


def test_where_a_redirect_led_can_be_left_out() -> None:
    answer = answered(302, target="https://elsewhere.example/ada@example.com")
    assert answer.error == "Redirects are not followed (302 to https://elsewhere.example/ada@example.com)."
    assert answer.error_without_target == sentence_without_target(302) == "Redirects are not followed (302)."


def test_other_sentences_have_nothing_to_leave_out() -> None:
    assert failed(Reason.LATE, "10 seconds").error_without_target == "No answer within 10 seconds."
    assert answered(500).error_without_target == sentence_without_target(500)
    assert answered(200).error_without_target is None


def test_a_fault_of_ours_is_recognised() -> None:
    assert failed(Reason.QUEUE).is_ours
    assert not failed(Reason.REFUSED).is_ours
