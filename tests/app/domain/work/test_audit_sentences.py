from __future__ import annotations

import re
from pathlib import Path

import pytest

import app
from app.domain.verbs import VERBS
from app.domain.work import audit_sentences

NOTED = {
    action
    for file in Path(app.__file__).parent.rglob("*.py")
    for action in re.findall(r'note\([^"{}]*"([a-z_]+\.[a-z_]+)"', file.read_text())
}


@pytest.mark.parametrize("action", sorted({*VERBS, *NOTED}))
def test_every_action_has_a_sentence(action: str) -> None:
    assert not audit_sentences.did(action, "thing").startswith("did ")


def test_every_action_that_is_noted_is_known_here() -> None:
    assert {"visits.begin", "members.invite", "support.disable", "tokens.revoke", "jobs.replay"} <= NOTED


@pytest.mark.parametrize(
    ("action", "target_type", "sentence"),
    [
        ("deliveries.resend", "delivery", "resent the delivery"),
        ("saved_replies.update", "saved_reply", "changed the saved reply"),
        ("endpoints.rotate_secret", "endpoint", "changed the secret of the endpoint"),
        ("boats.launch", "boat", "did boats.launch to the boat"),
    ],
)
def test_it_says_what_was_done_to_what(action: str, target_type: str, sentence: str) -> None:
    assert audit_sentences.did(action, target_type) == sentence
