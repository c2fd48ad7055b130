"""WhatsApp: a business phone number on the Cloud API."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import quote

from app.channels import multipart
from app.channels.base import (
    OWN_SETTINGS,
    Account,
    ChannelKind,
    Field,
    File,
    Form,
    Outcome,
    Outgoing,
    Rate,
    Request,
    Verdict,
)
from app.channels.inbound import Arrival, Media
from app.channels.whatsapp_answers import judge
from app.channels.whatsapp_hooks import arrivals_in
from app.lib import json, normalization
from app.outbound import Answer

# The types of files that the API shows as something other than a document.
_SHOWN: Mapping[str, str] = {
    "image/jpeg": "image",
    "image/png": "image",
    "video/mp4": "video",
    "video/3gpp": "video",
    **dict.fromkeys(("audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"), "audio"),
}
_MOST_IMAGE_BYTES = 5 * 1024 * 1024
# More buttons than this become the rows of a list, which opens with a button of its own.
_MOST_BUTTONS = 3
_LIST_LABEL = "Options"
_MOST_ABOVE_BUTTONS = 1024
# The most characters of a template's parameter: in most components, and in the header.
_MOST_PARAMETER, _MOST_IN_HEADER = 1024, 60
# The members of a template's parameters that hold text. Meta refuses empty text; in _IN_A_LINE, also line breaks.
_IN_A_LINE = ("text", "fallback_value", "link", "coupon_code")
_FILLED = (*_IN_A_LINE, "payload")
_SECRET = {
    "type": "string",
    "pattern": "^[!-~]{1,1000}$",
    "x-form": "up to 1,000 letters, digits and signs, without spaces",
}


class WhatsApp(ChannelKind):
    """The Cloud API, part of what Meta calls "WhatsApp Business Platform"."""

    name = "whatsapp"
    in_words = "WhatsApp"
    most_characters = 4096
    most_caption = 1024
    most_buttons_beside_file = _MOST_BUTTONS
    channel_rate = Rate(80.0)
    conversation_rate = Rate(1 / 6, 45)
    sends_templates = True
    window = timedelta(hours=24)
    may_open = True
    # Meta's webhooks can have 3 MB.
    most_hook_bytes = 3 * 1024 * 1024
    credentials_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"access_token": _SECRET, "app_secret": _SECRET, "verify_token": _SECRET},
        "required": ["access_token", "app_secret", "verify_token"],
        "additionalProperties": False,
    }
    settings_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "phone_number_id": {
                "type": "string",
                "pattern": "^[0-9]{1,32}$",
                "x-form": "the number's identifier at Meta, such as 106540352242922",
            },
            **OWN_SETTINGS,
        },
        "required": ["phone_number_id"],
        "additionalProperties": False,
    }

    form = Form(
        "WhatsApp",
        "A business number of the WhatsApp Business Platform.",
        settings=(
            Field(
                "phone_number_id",
                "Phone number ID",
                "From the API setup of your app at developers.facebook.com; it is not the number itself.",
                "Give the identifier of the number, which has only digits.",
            ),
        ),
        credentials=(
            Field(
                "access_token",
                "Access token",
                "The token of a system user, which does not expire.",
                "Give the access token of a system user.",
            ),
            Field(
                "app_secret",
                "App secret",
                "From the app's basic settings. It proves that a webhook comes from Meta.",
                "Give the app secret, which has 32 digits and letters.",
            ),
            Field(
                "verify_token",
                "Verify token",
                "Make up any text. Meta asks for the same when you enter the address of the webhook.",
                "Make up a text without spaces.",
            ),
        ),
        afterwards="Enter this address as the callback URL of your app's webhooks, with the verify token that you made "
        "up, and subscribe to the field messages:",
        steps=(
            "Open your app at developers.facebook.com, or create one with WhatsApp. The number must be on the WhatsApp "
            "Business Platform.",
            "In WhatsApp → API Setup, copy the Phone number ID. It is not the phone number.",
            "In the business settings, under System users, add one, give it access to the app and to the WhatsApp "
            "account, and generate a token that never expires, with whatsapp_business_messaging and "
            "whatsapp_business_management. The token in the API Setup ends after a day.",
            "In App settings → Basic, show and copy the App secret.",
            "Make up a verify token, fill in the form, and choose Connect.",
            "The next page shows the address of the webhook. In WhatsApp → Configuration enter it as Callback URL, "
            "with the verify token, choose Verify and save, and subscribe to the field messages. Without that nothing "
            "comes in.",
        ),
    )

    def recipient(self, to: str) -> str:
        """Returns the number without "+", or the identifier of a person who hides it. Raises ValueError."""
        phone = re.sub(r"[ ()./-]", "", to).removeprefix("+")
        if re.fullmatch(r"[1-9][0-9]{6,14}", phone, re.ASCII):
            return phone
        if re.fullmatch(r"[A-Z]{2}\.[A-Za-z0-9.]{1,128}", to, re.ASCII):
            return to
        raise ValueError("Give a phone number on WhatsApp with its country code, like +4930123456.")

    def most_text(self, files: int, buttons: int) -> int:
        """Returns the longest text: Meta allows less above reply buttons than above a list."""
        return _MOST_ABOVE_BUTTONS if 0 < buttons <= _MOST_BUTTONS else super().most_text(files, buttons)

    def list_label(self, buttons: int) -> str | None:
        """Returns a label for more than three buttons; None for fewer. Meta shows more only as a list."""
        return _LIST_LABEL if buttons > _MOST_BUTTONS else None

    def fresh_credentials(self, given: Mapping[str, str]) -> dict[str, str]:
        """Returns the given credentials: Meta issues all of them."""
        return dict(given)

    def connecting(self, account: Account) -> Sequence[Request]:
        """Returns the request for the number's data, which shows whether the token has access to it."""
        fields = "fields=id,display_phone_number,verified_name"
        return [Request("GET", f"{_number(account)}?{fields}", _authorization(account))]

    def connected(self, account: Account, answers: Sequence[Answer]) -> tuple[Verdict, str | None]:
        """Returns the verdict on the answer, and the phone number's identifier; None if not connected."""
        number: str = account.settings["phone_number_id"]
        verdict = judge(answers[-1], False, lambda document: str(document.get("id", number)))
        # Proxies and test servers may not know this path. If the number is wrong, the API says so with an error of its
        # own.
        is_connected = verdict.outcome is Outcome.SENT or verdict.code == "not_found"
        found = verdict.provider_id or number
        return (Verdict(Outcome.SENT, found), found) if is_connected else (verdict, None)

    def template_fault(self, template: Mapping[str, Any]) -> str | None:
        """Returns the fault of the first parameter that is empty or too long for Meta; None if none is."""
        components = template.get("components")
        for component in components if isinstance(components, list) else ():
            kind = component.get("type") if isinstance(component, Mapping) else None
            most = _MOST_IN_HEADER if str(kind).lower() == "header" else _MOST_PARAMETER
            for name, text in _parameters(component):
                if not normalization.bare(text):
                    return "A parameter of the template is empty."
                if name == "text" and len(" ".join(text.split())) > most:
                    return f"A parameter of the template has more than {most:,} characters."
        return None

    def preparing(self, account: Account, outgoing: Outgoing) -> Request | None:
        """Returns the request that uploads the message's file; None if it has no file."""
        file = outgoing.file
        if file is None:
            return None
        # Meta accepts no type of text except text/plain, so tables and other texts are sent as that.
        content_type = "text/plain" if file.content_type.startswith("text/") else file.content_type
        fields = {"messaging_product": "whatsapp", "type": content_type}
        kind, body = multipart.encode(fields, "file", file.name, content_type, file.content)
        return Request("POST", f"{_number(account)}/media", {**_authorization(account), "Content-Type": kind}, body)

    def prepared(self, answer: Answer) -> str | Verdict:
        """Returns the uploaded file's identifier, or the verdict if the upload failed."""
        verdict = judge(answer, False, _id_of)
        return verdict.provider_id if verdict.provider_id is not None else verdict

    def sending(self, account: Account, outgoing: Outgoing, prepared: str | None) -> Request:
        """Returns the request for a template, a text or an uploaded file, with our id for its statuses."""
        envelope = {**_envelope(outgoing.to), "biz_opaque_callback_data": outgoing.message_id}
        return _posting(account, envelope | _content(outgoing, prepared))

    def sent(self, outgoing: Outgoing, answer: Answer) -> Verdict:
        """Returns the verdict. SENT has the message's identifier; UNKNOWN if it may have been accepted."""
        return judge(answer, True, _first_message)

    def challenged(self, account: Account, query: Mapping[str, str]) -> str | None:
        """Returns the challenge if the verify token is right; otherwise None."""
        expected = account.credentials.get("verify_token", "")
        given = query.get("hub.verify_token", "")
        is_right = hmac.compare_digest(given.encode(), expected.encode())
        return query.get("hub.challenge") if expected and is_right and query.get("hub.mode") == "subscribe" else None

    def is_genuine(self, account: Account, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the webhook is signed with the app's secret."""
        secret = account.credentials.get("app_secret")
        if not secret:
            return False
        expected = f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
        return hmac.compare_digest(headers.get("x-hub-signature-256", "").encode(), expected.encode())

    def arrivals(self, account: Account, body: bytes) -> Sequence[Arrival]:
        """Returns the arrivals in the webhook for this number. Raises BadPayload."""
        return arrivals_in(body, account.settings["phone_number_id"])

    def locating(self, account: Account, media: Media) -> Request:
        """Returns the request for a file's address, which works for five minutes."""
        address = f"{account.api_url}/{quote(media.ref, safe='')}"
        return Request("GET", address, _authorization(account))

    def located(self, account: Account, answer: Answer) -> Request | Verdict:
        """Returns the request that downloads the file, with the token; or the verdict if there is none."""
        verdict = judge(answer, False, lambda document: _text_of(document, "url"))
        if verdict.provider_id is None:
            return verdict
        return Request("GET", verdict.provider_id, _authorization(account))

    def reading(self, account: Account, peer: str, provider_id: str) -> Request | None:
        """Returns the request that marks the message, and all before it, as read."""
        return _posting(account, {"messaging_product": "whatsapp", "status": "read", "message_id": provider_id})


def _number(account: Account) -> str:
    return f"{account.api_url}/{account.settings['phone_number_id']}"


def _authorization(account: Account) -> dict[str, str]:
    return {"Authorization": f"Bearer {account.credentials.get('access_token', '')}"}


def _posting(account: Account, document: Mapping[str, Any]) -> Request:
    headers = {**_authorization(account), "Content-Type": "application/json"}
    return Request("POST", f"{_number(account)}/messages", headers, json.dumps(document))


def _envelope(to: str) -> dict[str, str]:
    """Returns the recipient's part: a phone number, or the identifier of a person who hides it."""
    phone = to.removeprefix("+")
    whom = {"to": phone} if re.fullmatch("[0-9]+", phone) else {"recipient": to}
    return {"messaging_product": "whatsapp", "recipient_type": "individual", **whom}


def _content(outgoing: Outgoing, prepared: str | None) -> dict[str, Any]:
    if outgoing.template is not None:
        return {"type": "template", "template": _template(outgoing.template)}
    if outgoing.buttons:
        return {"type": "interactive", "interactive": _interactive(outgoing, prepared)}
    if outgoing.file is None:
        return {"type": "text", "text": {"body": outgoing.text}}
    kind = _shown_as(outgoing.file, outgoing.text)
    part = {"id": prepared}
    if outgoing.text and kind != "audio":
        part["caption"] = outgoing.text
    if kind == "document":
        part["filename"] = outgoing.file.name
    return {"type": kind, kind: part}


def _interactive(outgoing: Outgoing, prepared: str | None) -> dict[str, Any]:
    """Returns the text with a list, or with a few reply buttons, perhaps below a file."""
    body = {"body": {"text": outgoing.text}}
    if len(outgoing.buttons) > _MOST_BUTTONS:
        rows = [{"id": each["id"], "title": each["label"]} for each in outgoing.buttons]
        return {"type": "list", **body, "action": {"button": _LIST_LABEL, "sections": [{"rows": rows}]}}
    replies = [{"type": "reply", "reply": {"id": each["id"], "title": each["label"]}} for each in outgoing.buttons]
    header = {} if outgoing.file is None else {"header": _header(outgoing.file, prepared)}
    return {"type": "button", **header, **body, "action": {"buttons": replies}}


def _header(file: File, prepared: str | None) -> dict[str, Any]:
    kind = _shown_as(file, "beside a text")
    name = {"filename": file.name} if kind == "document" else {}
    return {"type": kind, kind: {"id": prepared, **name}}


def _shown_as(file: File, caption: str | None) -> str:
    kind = _SHOWN.get(file.content_type.partition(";")[0].strip().lower(), "document")
    is_too_large = kind == "image" and len(file.content) > _MOST_IMAGE_BYTES
    # Audio cannot have a caption, so with a caption it is sent as a document.
    return "document" if is_too_large or (kind == "audio" and caption) else kind


def _template(template: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the template in the API's format. `language` may be given as a plain code."""
    language = template.get("language")
    taken: dict[str, Any] = _flat(template)
    return {**taken, "language": {"code": language}} if isinstance(language, str) else taken


def _parameters(part: Any) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each parameter in a part of a template."""
    if isinstance(part, Mapping):
        yield from ((name, part[name]) for name in _FILLED if isinstance(part.get(name), str))
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _parameters(inner)


def _flat(part: Any) -> Any:
    """Puts parameters on one line with single spaces: Meta refuses templates with any others."""
    if isinstance(part, Mapping):
        return {name: _in_a_line(each) if name in _IN_A_LINE else _flat(each) for name, each in part.items()}
    return [_flat(inner) for inner in part] if isinstance(part, list) else part


def _in_a_line(text: Any) -> Any:
    return " ".join(text.split()) if isinstance(text, str) else text


def _first_message(document: Mapping[str, Any]) -> str | None:
    messages = document.get("messages")
    return _id_of(messages[0]) if isinstance(messages, list) and messages else None


def _id_of(document: object) -> str | None:
    return _text_of(document, "id")


def _text_of(document: object, name: str) -> str | None:
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, str) and found else None
