"""Normalises what people enter. Each function raises ValueError with a sentence for them."""

from __future__ import annotations

import re
import sys
import unicodedata
from contextlib import suppress
from functools import cache
from zoneinfo import available_timezones

import email_validator
import phonenumbers

from app.lib import phones

# Addresses are stored, not dialled, so shop.test and example.com are fine.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

# Common addresses, which the library would return unchanged. The library takes as long as
# validating the rest of a contact does.
_PLAIN_EMAIL = re.compile(
    r"(?=.{3,254}$)[A-Za-z0-9_+-]{1,20}(\.[A-Za-z0-9_+-]{1,20}){0,2}@([a-z0-9]{1,30}(-[a-z0-9]{1,30})?\.){1,3}[a-z]{2,30}",
    re.ASCII,
)
# A tag or a name: no control characters, and not only spaces.
TAG = r"[^\x00-\x1f\x7f-\x9f]*[^\x00-\x1f\x7f-\x9f\s][^\x00-\x1f\x7f-\x9f]*"
NAME_SCHEMA = {"minLength": 1, "maxLength": 255, "pattern": f"^{TAG}$"}
# The limits of a custom field. JSON parsers disagree about larger integers.
LONGEST_VALUE = 4096
LARGEST_NUMBER = 2**53
# Combining marks. A change of case adds or removes some of them: Greek accents, and the dot of an i.
_MARKS = re.compile("[\u0300-\u036f]+")
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")
_GREEK_ACCENTS, _DOT = str.maketrans("", "", "\u0300\u0301\u0342"), str.maketrans("", "", "\u0307")
# Combining classes: accents above, below and through letters (from 200 on), and the points of Hebrew, Arabic and
# Syriac.
_FIRST_ACCENT, _POINTS = 200, range(10, 37)
_HAMZA_AND_TATWEEL = "\u0621\u0640"
# Letters that Unicode does not decompose, such as đ, ł and the dotless i.
_LATIN = re.compile("LATIN SMALL LETTER (?:DOTLESS )?([A-Z])(?: WITH .*)?")
# Characters without width that choose a variant, join or fill.
_WITHOUT_WIDTH = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\U000e0100-\U000e01ef]")
LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?")


def name(text: str) -> str:
    """Returns the name, stripped: 1 to 255 characters, no control characters, and not only spaces."""
    if len(text) > 255 or not re.fullmatch(TAG, text):
        raise ValueError("A name has 1 to 255 characters, no control characters, and more than spaces.")
    return text.strip()


def tag(text: str) -> str:
    """Returns the tag, `bare`: 1 to 100 characters, no control characters, and not only spaces."""
    if len(text) > 100 or not re.fullmatch(TAG, text) or not bare(text):
        raise ValueError("A tag has 1 to 100 characters, no control characters, and more than spaces.")
    return bare(text)


def label(text: str) -> str:
    """Returns the label, `bare`: 1 to 100 characters, no control characters, and not only spaces."""
    if len(text) > 100 or not re.fullmatch(TAG, text) or not bare(text):
        raise ValueError("A label has 1 to 100 characters, no control characters, and more than spaces.")
    return bare(text)


def opt_out_word(text: str) -> str:
    """Returns the word or phrase of 1 to 50 characters, casefolded and with single spaces."""
    if len(text) > 50 or not re.fullmatch(TAG, text):
        raise ValueError("A word has 1 to 50 characters, no control characters, and more than spaces.")
    return " ".join(text.casefold().split())


def custom_value(value: object) -> str | int | float | bool | None:
    """Returns a custom field's value unchanged: a string, number, boolean or null within the limits."""
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise ValueError("A custom field holds a string, number, boolean or null.")
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        raise ValueError(f"A custom field holds at most {LONGEST_VALUE} characters.")
    if isinstance(value, (int, float)) and abs(value) > LARGEST_NUMBER:
        raise ValueError(f"A number of a custom field lies between -{LARGEST_NUMBER} and {LARGEST_NUMBER}.")
    return value


def email(text: str) -> str:
    """Returns the address `bare` and with a normalised domain (RFC 5321, at most 254 characters)."""
    if _PLAIN_EMAIL.fullmatch(text):
        return text
    try:
        return _validated(bare(text))
    except email_validator.EmailNotValidError as error:
        # The address may be in full width, or contain invisible characters.
        if (plain := readable(text)) != bare(text):
            with suppress(email_validator.EmailNotValidError):
                return _validated(plain)
        # Hides errors from IDNA, because they quote parts of the address, and errors of imports are stored.
        said = "The part after the @-sign is not valid." if error.__cause__ else error
        raise ValueError(f"This is not an e-mail address: {said}") from error


def _validated(address: str) -> str:
    return email_validator.validate_email(address, check_deliverability=False).normalized


def phone(text: str) -> str:
    """Returns the number in E.164, such as +4930123456. It needs a country code and no extension.

    A number in a form that its country has retired gets the new form, because nobody can call the old one.
    """
    plain = re.sub(r"^00[ -]?(?=[1-9])", "+", readable(text))
    # Refuses extensions: without them, colleagues who share a number would become one contact.
    if words := _words_after(plain):
        raise ValueError(f"Leave out '{words}': a contact is known by the number alone, without an extension.")
    try:
        number = phonenumbers.parse(plain, None)
    except phonenumbers.NumberParseException as error:
        raise ValueError("Give the phone number with its country code, such as +4930123456.") from error
    if number.extension:
        raise ValueError(f"Leave out the extension {number.extension}: a contact is known by the number alone.")
    written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    if phonenumbers.is_possible_number(number):
        return written
    for way in phones.ways_to_write(written)[1:]:
        if phonenumbers.is_possible_number(phonenumbers.parse(way, None)):
            return way
    raise ValueError("This phone number is too short or too long for its country.")


def _words_after(text: str) -> str | None:
    """Returns the words after a phone number; None if there are none, as in 1-800-FLOWERS."""
    if (found := re.search(r"\d[\W\d_]*?(?=[^\W\d_])", text)) is None:
        return None
    try:
        is_number = phonenumbers.is_possible_number(phonenumbers.parse(text[: found.end()], None))
    except phonenumbers.NumberParseException:
        return None
    return text[found.end() :].strip() if is_number else None


def locale(text: str) -> str:
    """Returns a language with optional script and region (BCP 47): en, pt-BR or zh-Hant-TW."""
    if not LOCALE.fullmatch(text):
        raise ValueError("Give a locale such as en, pt-BR or zh-Hant-TW.")
    return text.replace("_", "-")


def timezone(text: str) -> str:
    """Returns the name, given in any case, as the IANA database writes it, such as Europe/Berlin."""
    found = _timezones().get(text.lower())
    if found is None:
        raise ValueError("Give a time zone of the IANA database, such as Europe/Berlin.")
    return found


def is_timezone(text: str) -> bool:
    """Whether the IANA time zone database has a time zone of exactly that name, with the same case."""
    return _timezones().get(text.lower()) == text


def readable(text: str) -> str:
    """Prepares text to be read as a number or date: NFKC, digits 0 to 9, no invisible characters."""
    seen = (each for each in unicodedata.normalize("NFKC", text) if is_visible(each) and not _WITHOUT_WIDTH.match(each))
    return "".join(str(unicodedata.decimal(each, each)) for each in seen).strip()


def bare(text: str) -> str:
    """Returns the text in NFC, without spaces and invisible characters at its ends."""
    composed = unicodedata.normalize("NFC", text)
    seen = [place for place, each in enumerate(composed) if not each.isspace() and is_visible(each)]
    return composed[seen[0] : seen[-1] + 1] if seen else ""


def folded(text: str) -> str:
    """Folds the text, so that texts that a reader takes for equal become equal, whatever their case.

    Accents count, except the accents that Greek capitals lose, and the dot of the Turkish capital I.
    """
    if text.isascii():
        return text.lower()
    seen = unicodedata.normalize("NFKC", _unseen().sub("", text))
    decomposed = unicodedata.normalize("NFKD", seen.casefold())
    return unicodedata.normalize("NFC", _MARKS.sub(_without_marks_of_case, decomposed))


def unaccented(text: str) -> str:
    """Returns the text as a plain keyboard types it: without accents, hamza and tatweel.

    `text` should be in lower case. Keeps marks that make another syllable, such as Hindi vowels and Japanese voicing
    marks.
    """
    return text if text.isascii() else "".join(map(_plain_letter, unicodedata.normalize("NFD", text)))


def _plain_letter(character: str) -> str:
    kind = unicodedata.combining(character)
    if kind >= _FIRST_ACCENT or kind in _POINTS or character in _HAMZA_AND_TATWEEL:
        return ""
    latin = _LATIN.fullmatch(unicodedata.name(character, ""))
    return latin[1].lower() if latin else character


def _without_marks_of_case(found: re.Match[str]) -> str:
    base = found.string[found.start() - 1 : found.start()]
    if base == "i":
        return found[0].translate(_DOT)
    return found[0].translate(_GREEK_ACCENTS) if _GREEK.match(base) else found[0]


def is_visible(character: str) -> bool:
    """Whether the character is more than a direction mark, a joiner or another format character."""
    return unicodedata.category(character) != "Cf"


@cache
def _unseen() -> re.Pattern[str]:
    """Returns a pattern that matches format characters and variation selectors."""
    formatting = "".join(each for each in map(chr, range(sys.maxunicode + 1)) if not is_visible(each))
    return re.compile(f"[{formatting}\ufe00-\ufe0f]+")


@cache
def _timezones() -> dict[str, str]:
    """Maps lower-case names to names as the database writes them."""
    return {name.lower(): name for name in available_timezones()}
