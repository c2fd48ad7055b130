"""Forms that connect and change channels: the fields and instructions of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app import bounds
from app.channels.kinds import KINDS
from app.errors import Conflict, Invalid
from app.web.forms import typed


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the form. `wrong`: the page's error message for an invalid value."""

    name: str
    label: str
    hint: str
    wrong: str
    belongs_to: Literal["settings", "credentials"] = "credentials"
    is_list: bool = False
    # The default of a number field.
    otherwise: int | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """A kind's form: its fields, and the instructions before and after connecting.

    `steps`: what to do at the provider, in order. One of them is filling in `fields`.
    """

    label: str
    what: str
    fields: Sequence[Field]
    afterwards: str
    steps: Sequence[str] = ()


FORMS: Mapping[str, Form] = {
    "web_chat": Form(
        "Web chat",
        "A chat on your own pages, by a script that you paste in.",
        (
            Field(
                "origins",
                "Pages that may show it",
                "Their origins, one a line, such as https://shop.example.",
                "Give origins such as https://shop.example, without a path, at most 50.",
                "settings",
                is_list=True,
            ),
            Field(
                "new_visitors_per_minute",
                "New visitors a minute",
                "Others are asked to try again, so that your inbox cannot be flooded. At most 6,000.",
                "Give a number from 1 to 6,000.",
                "settings",
                otherwise=bounds.NEW_VISITORS_PER_CHANNEL.most,
            ),
        ),
        "Paste this line into your pages, before </body>:",
        (
            "Enter below which pages may show the chat: scheme and host, such as https://shop.example, and the port if "
            "the address has one. Leave the path out, and give a line to www.shop.example, too, if your shop has both.",
            "Choose Connect. The chat has no provider that has to accept it.",
            "Copy the secret from the next page if your server is to say who a visitor is. It is shown once.",
            "Copy the line with the script from the channel's page, and paste it into your pages before </body>.",
        ),
    ),
    "telegram": Form(
        "Telegram",
        "A bot that people write to. Make one with @BotFather in Telegram.",
        (
            Field(
                "bot_token",
                "Token of the bot",
                "From @BotFather, such as 123456789:AAE….",
                "This is not a bot's token. @BotFather shows it.",
            ),
        ),
        "Telegram sends messages to this address as soon as it accepts the bot. There is nothing to enter anywhere:",
        (
            "Open a chat with @BotFather in Telegram, and send /newbot. For a bot that you have, send /mybots, choose "
            "it, and press API Token; its present webhook is replaced.",
            "Choose a name, which people see, and a username that ends in “bot”.",
            "Copy the token from the answer into the field below. Who has it controls the bot.",
            "Choose Connect. The webhook is set by itself.",
            "Write to your bot to try it. A bot cannot write first, so give people the link t.me/ and its username.",
        ),
    ),
    "whatsapp": Form(
        "WhatsApp",
        "A business number of the WhatsApp Business Platform.",
        (
            Field(
                "phone_number_id",
                "Phone number ID",
                "From the API setup of your app at developers.facebook.com; it is not the number itself.",
                "Give the identifier of the number, which has only digits.",
                "settings",
            ),
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
        "Enter this address as the callback URL of your app's webhooks, with the verify token that you made up, and "
        "subscribe to the field messages:",
        (
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
    ),
}


def form_of(kind: str) -> Form:
    """Returns the form of a kind; for kinds without one, a form without fields."""
    return FORMS.get(kind) or Form(kind.replace("_", " ").capitalize(), "", (), "Messages arrive at this address:")


def offered() -> list[tuple[str, Form]]:
    """Returns the kinds that can be connected on a page."""
    return [(name, form) for name, form in FORMS.items() if name in KINDS]


def given(form: Form, *parts: str) -> dict[str, str]:
    """Reads the form's fields whose `belongs_to` is one of the parts."""
    return typed(*(field.name for field in form.fields if field.belongs_to in parts))


def part(form: Form, name: str, typed_in: Mapping[str, str]) -> dict[str, Any]:
    """Returns the `settings` or `credentials` as in the API."""
    found: dict[str, Any] = {}
    for field in form.fields:
        if field.belongs_to == name:
            found[field.name] = _value(field, typed_in.get(field.name, "").strip())
    return found


def _value(field: Field, text: str) -> str | int | list[str]:
    if field.is_list:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if field.otherwise is None:
        return text
    # Text that is not a number stays text, so that validation refuses it.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text or field.otherwise


def errors_of(form: Form, error: Invalid | Conflict) -> dict[str, str]:
    """Returns the error messages by field. Errors that concern no field are under ""."""
    if isinstance(error, Conflict):
        return {"": error.detail}
    fields = {field.name: field for field in form.fields}
    found: dict[str, str] = {}
    for fault in error.faults:
        names = fault.pointer.split("/")[1:]
        name = names[1] if len(names) > 1 else (names or [""])[0]
        found.setdefault(name, fields[name].wrong if name in fields else fault.detail)
    return found
