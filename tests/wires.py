"""A kind of channel for tests: it posts JSON to the address among the channel's settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from app.channels.base import Account, ChannelKind, Outcome, Outgoing, Request, Verdict
from app.channels.inbound import Arrival, Media
from app.outbound import Answer


class Wire(ChannelKind):
    """Understands the statuses 200, 400 (refused for good), 401, 403 (blocked), 429; nothing is known after others."""

    name: ClassVar[str] = "test"
    in_words: ClassVar[str] = "test"
    most_characters: ClassVar[int] = 4096
    most_caption: ClassVar[int] = 1024
    may_open: ClassVar[bool] = True
    settings_schema: ClassVar[Mapping[str, Any]] = {"type": "object"}

    def fresh_credentials(self, given: Mapping[str, str]) -> dict[str, str]:
        return dict(given)

    def connecting(self, account: Account) -> Sequence[Request]:
        return ()

    def connected(self, account: Account, answers: Sequence[Answer]) -> tuple[Verdict, str | None]:
        return Verdict(Outcome.SENT), None

    def disconnecting(self, account: Account) -> Sequence[Request]:
        return ()

    def preparing(self, account: Account, outgoing: Outgoing) -> Request | None:
        address = account.settings.get("upload_address")
        return Request("POST", address, {}, outgoing.file.content) if address and outgoing.file else None

    def prepared(self, answer: Answer) -> str | Verdict:
        if answer.ok:
            return answer.body.decode()
        return Verdict(Outcome.LATER, code="upload", detail="The file was not taken.")

    def sending(self, account: Account, outgoing: Outgoing, prepared: str | None) -> Request:
        body = {"to": outgoing.to, "text": outgoing.text, "message": outgoing.message_id, "file": prepared}
        headers = {"Authorization": account.credentials.get("token", "none"), "Content-Type": "application/json"}
        return Request("POST", account.settings["address"], headers, json.dumps(body).encode())

    def sent(self, outgoing: Outgoing, answer: Answer) -> Verdict:
        if answer.status == 200:
            return Verdict(Outcome.SENT, answer.body.decode() or f"at-provider-{outgoing.message_id}")
        if answer.status == 401:
            return Verdict(Outcome.UNAUTHORIZED, code="401", detail="The token is not accepted.")
        if answer.status == 429:
            asked = json.loads(answer.body)
            pause = {"pause_seconds": asked["seconds"], "pauses": asked["of"]}
            return Verdict(Outcome.LATER, code="429", **pause)
        if answer.status == 403:
            return Verdict(Outcome.FAILED, code="blocked", detail="The contact has blocked the shop.", is_opt_out=True)
        if answer.status == 400:
            return Verdict(Outcome.FAILED, code="400", detail=answer.body.decode())
        return Verdict(Outcome.UNKNOWN, code=answer.error_code, detail=answer.error)

    def challenged(self, account: Account, query: Mapping[str, str]) -> str | None:
        return None

    def is_genuine(self, account: Account, headers: Mapping[str, str], body: bytes) -> bool:
        return False

    def arrivals(self, account: Account, body: bytes) -> Sequence[Arrival]:
        return ()

    def locating(self, account: Account, media: Media) -> Request:
        raise NotImplementedError

    def located(self, account: Account, answer: Answer) -> Request | Verdict:
        raise NotImplementedError

    def reading(self, account: Account, peer: str, provider_id: str) -> Request | None:
        address = account.settings.get("read_address")
        return Request("POST", address, {}, json.dumps([peer, provider_id]).encode()) if address else None


WIRE = Wire()
