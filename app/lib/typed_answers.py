"""Reads what people type: numbers, dates, addresses, choices. Raises ValueError if unreadable."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date as Date
from functools import cache

from babel import Locale, UnknownLocaleError
from babel.dates import get_date_format, get_day_names, get_month_names
from babel.numbers import get_currency_name, get_decimal_symbol, get_group_symbol
from babel.units import format_unit

from app.lib import clock, money, normalization

_NUMBER = re.compile(r"([+-]?)([0-9][0-9 .,']*|[.,][0-9]+)", re.ASCII)
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{2,3})*,[0-9]{3}", re.ASCII)
_ARABIC_DECIMAL, _ARABIC_THOUSANDS = "\u066b", "\u066c"
_MOST_DIGITS, _MOST_DECIMALS = 15, 10
# Nobody types a longer number or date, or has a longer address. Longer texts would take long to parse.
_LONGEST, _LONGEST_ADDRESS = 100, 500
_YEAR_FIRST = re.compile(r"([0-9]{4}) ?[-/.年년] ?([0-9]{1,2}) ?[-/.月월] ?([0-9]{1,2}) ?[日일]?", re.ASCII)
_YEAR_LAST = re.compile(r"([0-9]{1,2}) ?([-/. ]) ?([0-9]{1,2}) ?\2 ?([0-9]{4}|[0-9]{2})", re.ASCII)
# Words within dates such as "the 21st of November 2026" and "21 de noviembre de 2026".
_BETWEEN = {*("the", "of", "st", "nd", "rd", "th", "de", "del", "do", "di", "den", "le", "er", "o", "r")} | {
    *("\u0433", "года", "\u0440")
}
_TIME_AFTER = re.compile(
    r"[T,]? ?[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)? ?([ap]\.?m|uhr|h)?\.? ?(z|utc|gmt|[+-][0-9]{2}:?[0-9]{2})?$",
    re.IGNORECASE | re.ASCII,
)
# How many years ahead a two-digit year may be.
_AHEAD = 20
# Years outside this range are probably of another calendar, such as 1405 in Persian. Thai years are 543 ahead.
_YEARS = range(1800, 2201)
_BUDDHIST = 543
# A keycap emoji; labels may begin with one.
_KEYCAP = re.compile("[0-9#*]\ufe0f?\u20e3")


class Ambiguous(ValueError):
    """The text can be read in several ways (`readings`), and the language does not decide."""

    def __init__(self, *readings: object) -> None:
        super().__init__(" / ".join(map(str, readings)))
        self.readings = tuple(map(str, readings))


def number(text: str, language: str | None = None) -> int | float:
    """Reads a number, perhaps with a currency or unit: "1.234,50", "1 000", "25 €".

    `language`: the writer's, such as pt-BR. It decides whether a comma or a point separates thousands. Raises Ambiguous
    if the language does not decide, as for "1.000".
    """
    locale = _locale(language)
    # Refuses superscripts and similar digits, which would count as plain digits below.
    if len(text) > _LONGEST or any(each.isdigit() and not each.isdecimal() for each in text):
        raise ValueError("This is no number.")
    plain = re.sub("[\u2018\u2019`]", "'", normalization.readable(text).replace("\u2212", "-"))
    # Arabic has separators of its own, which are never ambiguous.
    is_arabic = bool({_ARABIC_DECIMAL, _ARABIC_THOUSANDS} & set(plain))
    plain = plain.replace(_ARABIC_DECIMAL, ".").replace(_ARABIC_THOUSANDS, "")
    found = _NUMBER.search(plain)
    # A dash may stand for the cents of a whole price, as in "25,-".
    beside = (plain[: found.start()], re.sub("^[-\u2013\u2014]+", "", plain[found.end() :])) if found else ()
    if found is None or not all(_is_unit(each, locale) for each in beside):
        raise ValueError("This is no number.")
    sign, digits = found[1], re.sub("^(?=[.,])", "0", found[2].strip().rstrip("."))
    if is_arabic:
        return _value(sign + digits.partition(".")[0], digits.partition(".")[2])
    whole = digits.replace("'", " ")
    if " " in whole:
        head, *groups = re.split(r"([.,])", whole, maxsplit=1)
        if not re.fullmatch(r"[0-9]{1,3}( [0-9]{3})+", head):
            raise ValueError("This is no number.")
        return _value(sign + head.replace(" ", ""), "".join(groups[1:]))
    return _separated(sign, digits, locale)


def _separated(sign: str, digits: str, locale: Locale | None) -> int | float:
    """Reads a number with points and commas. Raises Ambiguous if the language does not decide."""
    marks = re.sub("[0-9]", "", digits)
    if len(set(marks)) == 2:
        head, last, decimals = digits.rpartition(marks[-1])
        if last in head or not _GROUPED.fullmatch(head.replace(marks[0], ",")):
            raise ValueError("This is no number.")
        return _value(sign + head.replace(marks[0], ""), decimals)
    if len(marks) > 1:
        if not _GROUPED.fullmatch(digits.replace(marks[0], ",")):
            raise ValueError("This is no number.")
        return _value(sign + digits.replace(marks[0], ""), "")
    if not marks or not _GROUPED.fullmatch(digits.replace(marks, ",")):
        head, _, decimals = digits.partition(marks) if marks else (digits, "", "")
        return _value(sign + head, decimals)
    head, _, last = digits.partition(marks)
    thousands, decimal = _value(sign + head + last, ""), _value(sign + head, last)
    if locale is not None and marks == get_group_symbol(locale):
        return thousands
    # Decimals rarely end in 0: "1.000" in English may well mean a thousand.
    if locale is not None and marks == get_decimal_symbol(locale) and not last.endswith("0"):
        return decimal
    raise Ambiguous(thousands, f"{decimal:g}")


def _value(whole: str, decimals: str) -> int | float:
    if len(whole.lstrip("+-")) > _MOST_DIGITS or len(decimals) > _MOST_DECIMALS or not (decimals or "0").isdigit():
        raise ValueError("This is no number.")
    return float(f"{whole}.{decimals}") if decimals else int(whole)


def _is_unit(text: str, locale: Locale | None) -> bool:
    """Whether the text beside a number is a unit. "k" is none, because it may multiply the number."""
    said = _as_unit(text)
    if not said:
        return not text.strip()
    if all(unicodedata.category(each) == "Sc" or each == "%" for each in said) or said.upper() in money.DECIMAL_PLACES:
        return True
    return any(said in _units(name) for name in {"en", str(locale or "en")})


def _as_unit(text: str) -> str:
    """Folds the case of a unit, unless it is short: K and k differ."""
    said = text.strip().rstrip(".")
    return said if len(said) < 3 else said.casefold()


@cache
def _units(locale_name: str) -> frozenset[str]:
    """Returns names and symbols of currencies and units in a language, as written beside a number."""
    locale = Locale.parse(locale_name)
    named = {get_currency_name(code, count=count, locale=locale) for code in money.DECIMAL_PLACES for count in (1, 2)}
    measured = {
        format_unit(count, unit, length, locale=locale).replace(str(count), "")
        for unit in map(str, locale.unit_display_names)
        for length in ("short", "long")
        for count in (1, 2, 5, 11)
    }
    # Drop single letters, which may stand for a thousand or a million, except in scripts without an alphabet.
    known = {_as_unit(each) for each in named | measured | {*locale.currency_symbols.values()}}
    return frozenset(each for each in known if len(each) > 1 or unicodedata.category(each or " ") == "Lo")


def date(text: str, language: str | None = None) -> str:
    """Returns the date as 2026-11-21, from "21. 11. 26", "11/21/2026 14:30", "Sat, 21 Nov 2026" etc.

    Raises Ambiguous for "3/4/2026" if the language does not decide which is the month.
    """
    if len(text) > _LONGEST:
        raise ValueError("This is no date.")
    locale = _locale(language)
    plain = _TIME_AFTER.sub("", " ".join(normalization.readable(text).split())).rstrip(".")
    numbers = re.sub(r"^(\D+?)[., ]+(?=[0-9])", lambda word: "" if _is_weekday(word[1], locale) else word[0], plain)
    if found := _YEAR_FIRST.fullmatch(numbers):
        return Date(_year(found[1], locale), int(found[2]), int(found[3])).isoformat()
    if found := _YEAR_LAST.fullmatch(numbers):
        return _in_order(int(found[1]), int(found[3]), _year(found[4], locale), found[2], locale)
    if named := _with_month_name(plain, locale):
        return named.isoformat()
    return Date.fromisoformat(plain).isoformat()


def _in_order(first: int, second: int, year: int, mark: str, locale: Locale | None) -> str:
    """Returns the date, given its day and month in either order.

    A point or space as the separator (`mark`) means that the day comes first. Raises Ambiguous if neither the
    mark, the numbers nor the language decide.
    """
    if mark in ". " or first > 12 or first == second:
        return Date(year, second, first).isoformat()
    if second > 12:
        return Date(year, first, second).isoformat()
    # English without a territory may be American, which puts the month first, or not.
    is_unknown = locale is None or (locale.language == "en" and not locale.territory)
    pattern = "" if is_unknown else get_date_format("short", locale).pattern
    if re.match("d.*M", pattern):
        return Date(year, second, first).isoformat()
    if re.match("M.*d", pattern):
        return Date(year, first, second).isoformat()
    raise Ambiguous(Date(year, second, first), Date(year, first, second))


def _year(text: str, locale: Locale | None) -> int:
    if len(text) == 4:
        given = int(text)
        year = given - _BUDDHIST if locale and locale.language == "th" and given not in _YEARS else given
        if year not in _YEARS:
            raise ValueError("This is no year of our calendar.")
        return year
    last = clock.now().year + _AHEAD
    return last - (last - int(text)) % 100


def _with_month_name(text: str, locale: Locale | None) -> Date | None:
    said = normalization.unaccented(text.casefold())
    words = [each for each in re.findall(r"[0-9]+|[^0-9\s.,/()-]+", said) if each not in _BETWEEN]
    months = {**_months("en"), **(_months(str(locale)) if locale else {})}
    numbers = [each for each in words if each.isdigit()]
    named = [each for each in words if not each.isdigit() and (each in months or not _is_weekday(each, locale))]
    if len(numbers) != 2 or len(named) != 1 or named[0] not in months:
        return None
    day, year = sorted(numbers, key=len)
    return Date(_year(year, locale), months[named[0]], int(day)) if len(year) == 4 and len(day) <= 2 else None


@cache
def _months(locale_name: str) -> Mapping[str, int]:
    return {
        normalization.unaccented(name.casefold()).rstrip("."): month
        for width in ("abbreviated", "wide")
        for context in ("stand-alone", "format")
        for month, name in get_month_names(width, context, locale_name).items()
    }


def _is_weekday(word: str, locale: Locale | None) -> bool:
    return normalization.unaccented(word.casefold()) in _weekdays("en") | (_weekdays(str(locale)) if locale else set())


@cache
def _weekdays(locale_name: str) -> frozenset[str]:
    """Returns the long and short names of the days of the week in a language."""
    names = [
        name
        for width in ("abbreviated", "short", "wide")
        for context in ("stand-alone", "format")
        for name in get_day_names(width, context, locale_name).values()
    ]
    return frozenset(normalization.unaccented(name.casefold()).rstrip(".") for name in names)


def email(text: str) -> str:
    """Reads an e-mail address, perhaps after a name or `mailto:`, in brackets or before a full stop."""
    plain = normalization.bare(text)
    if found := re.fullmatch(r"[^<>]*<([^<>]+)>", plain):
        plain = found[1]
    plain = re.sub("^mailto:", "", plain, flags=re.IGNORECASE).rstrip(".")
    try:
        return normalization.email(plain)
    except ValueError:
        # No address ends in a sign, and few begin with one.
        found = re.fullmatch(r"(?:[^@:]*:)?\W*([^\s@]+@[^\s@?]+?)(?:\?\S*)?\W*", plain[:_LONGEST_ADDRESS])
        if found is None or len(plain) > _LONGEST_ADDRESS:
            raise
        return normalization.email(found[1])


def choice(offered: Sequence[Mapping[str, str]], text: str) -> str:
    """Returns the `id` of the button that the text names by its label, `id`, number or emoji."""
    numbered = [(str(number), each["id"]) for number, each in enumerate(offered, 1)]
    by_id = [(each["id"], each["id"]) for each in offered]
    by_label = [(each["label"], each["id"]) for each in offered]
    for key in (_words, _plain_words, _signs):
        names: dict[str, str] = {}
        for named in (numbered, by_id, by_label):
            names |= _clear(named, key)
        if (said := key(text)) and said in names:
            return names[said]
    raise ValueError("This is none of the buttons.")


def _clear(named: Iterable[tuple[str, str]], key: Callable[[str], str]) -> dict[str, str]:
    """Maps names to identifiers, without names that occur twice."""
    pairs = [(key(name), identifier) for name, identifier in named]
    names = [name for name, _ in pairs]
    return {name: identifier for name, identifier in pairs if name and names.count(name) == 1}


def _words(text: str) -> str:
    """Returns letters and digits of the text, folded for comparison, without keycap emoji."""
    without = _KEYCAP.sub("", text)
    text = without if any(map(str.isalnum, without)) else text
    said = [each for each in normalization.folded(normalization.readable(text)) if not "\ufe00" <= each <= "\ufe0f"]
    return "".join(each for each in said if each.isalnum() or unicodedata.category(each) in ("Mn", "Mc"))


def _plain_words(text: str) -> str:
    return normalization.unaccented(_words(text))


def _signs(text: str) -> str:
    return "".join(each for each in text if unicodedata.category(each) == "So")


def _locale(language: str | None) -> Locale | None:
    for name in (language, (language or "").partition("-")[0]):
        try:
            return Locale.parse(name, sep="-") if name else None
        except (UnknownLocaleError, ValueError):
            continue
    return None
