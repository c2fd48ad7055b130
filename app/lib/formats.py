"""Formats of what people enter, brought into their normal form; each raises ValueError with a sentence."""

from __future__ import annotations

import re
from functools import cache
from zoneinfo import available_timezones

import email_validator
import phonenumbers

# Addresses are stored, not dialled: shop.test and example.com are as good as any.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

# The common case, which the library would pass unchanged: it costs as much as all the rest of a contact.
_PLAIN_EMAIL = re.compile(
    r"(?=.{3,254}$)[A-Za-z0-9_+-]{1,20}(\.[A-Za-z0-9_+-]{1,20}){0,2}@([a-z0-9]{1,30}(-[a-z0-9]{1,30})?\.){1,3}[a-z]{2,30}",
    re.ASCII,
)
LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?")


def name(text: str) -> str:
    """What something is called: 1 to 255 characters, no control characters, more than spaces; those at its ends go."""
    if not (text.strip() and len(text) <= 255) or re.search(r"[\x00-\x1f\x7f-\x9f]", text):
        raise ValueError("A name has 1 to 255 characters, no control characters, and more than spaces.")
    return text.strip()


def email(text: str) -> str:
    """The address with its domain in normal form (RFC 5321, at most 254 characters)."""
    if _PLAIN_EMAIL.fullmatch(text):
        return text
    try:
        return email_validator.validate_email(text, check_deliverability=False).normalized
    except email_validator.EmailNotValidError as error:
        # What comes of IDNA repeats parts of the address, and imports keep what was wrong.
        said = "The part after the @-sign is not valid." if error.__cause__ else error
        raise ValueError(f"This is not an e-mail address: {said}") from error


def phone(text: str) -> str:
    """The number in E.164, such as +4930123456; it must be given with its country code."""
    try:
        number = phonenumbers.parse(text, None)
    except phonenumbers.NumberParseException as error:
        raise ValueError("Give the phone number with its country code, such as +4930123456.") from error
    if not phonenumbers.is_possible_number(number):
        raise ValueError("This phone number is too short or too long for its country.")
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def locale(text: str) -> str:
    """A language with an optional script and region (BCP 47), such as en, pt-BR or zh-Hant-TW."""
    if not LOCALE.fullmatch(text):
        raise ValueError("Give a locale such as en, pt-BR or zh-Hant-TW.")
    return text.replace("_", "-")


def timezone(text: str) -> str:
    """A name of the IANA time zone database, such as Europe/Berlin."""
    if text not in _timezones():
        raise ValueError("Give a time zone of the IANA database, such as Europe/Berlin.")
    return text


@cache
def _timezones() -> frozenset[str]:
    return frozenset(available_timezones())
