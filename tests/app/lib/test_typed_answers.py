from __future__ import annotations

from typing import Any

import pytest

from app.lib import typed_answers
from app.lib.typed_answers import Ambiguous
from tests.app.lib.test_normalization import wide


@pytest.mark.parametrize(
    ("text", "language", "value"),
    [
        ("25", None, 25),
        ("-3.50", None, -3.5),
        ("\u22123,5", None, -3.5),
        ("1,5", None, 1.5),
        ("0.125", None, 0.125),
        ("1234.567", None, 1234.567),
        ("1.234,50", None, 1234.5),
        ("1,234.50", None, 1234.5),
        ("1.234.567", None, 1234567),
        ("12,34,567", None, 1234567),
        ("1 000", None, 1000),
        ("1\u202f000,5", None, 1000.5),
        ("1'000.50", None, 1000.5),
        ("1\u2019000", None, 1000),
        ("\u0662\u0665", None, 25),
        ("\u0661\u066c\u0660\u0660\u0660\u066b\u0665", None, 1000.5),
        (wide("25"), None, 25),
        ("25 €", None, 25),
        ("€25", None, 25),
        ("R$ 25,50", "pt-BR", 25.5),
        ("CHF 1'000", None, 1000),
        ("25 Euro", "de", 25),
        ("25 euros", None, 25),
        ("25 kg", None, 25),
        ("3 Stunden", "de-AT", 3),
        ("5 %", None, 5),
        ("25.", None, 25),
        (".5", None, 0.5),
        (",5", "de", 0.5),
        ("25,-", None, 25),
        ("25.\u2013 €", "de-CH", 25),
        ("25 лет", "ru", 25),
        ("500円", "ja", 500),
        ("1.000", "de", 1000),
        ("12.500", "pt-BR", 12500),
        ("1,000", "en-GB", 1000),
        ("1,234", "de", 1.234),
        ("1.234", "en", 1.234),
        ("1.000", "de-CH", Ambiguous("1000", "1")),
        ("1.000", None, Ambiguous("1000", "1")),
        ("1,000", None, Ambiguous("1000", "1")),
        ("12.500", "en", Ambiguous("12500", "12.5")),
        ("12.500", "xx-not-one", Ambiguous("12500", "12.5")),
        *(
            (text, None, None)
            for text in ("", "four", "5k", "5 K", "2 Mio", "2 or 3", "1 5", "1,2,3", "²²a", "1.2.3,4")
        ),
        *((text, None, None) for text in ("1" * 16, "12:30", "+49 30 123456", "1..5", ".", "-")),
    ],
)
def test_a_number_is_read_as_people_type_it(text: str, language: str | None, value: Any) -> None:
    check(typed_answers.number, text, language, value)


@pytest.mark.parametrize(
    ("text", "language", "value"),
    [
        *(
            (text, None, "2026-11-21")
            for text in ("2026-11-21", "21.11.2026", "21. 11. 2026", "21.11.26", "21/11/2026")
        ),
        *(
            (text, None, "2026-11-21")
            for text in ("2026/11/21", "2026. 11. 21.", "21-11-2026", "11/21/2026", "20261121")
        ),
        *((text, None, "2026-11-21") for text in ("21 November 2026", "Nov 21st, 2026", "the 21st of November 2026")),
        ("\u0662\u0661/\u0661\u0661/\u0662\u0660\u0662\u0666", None, "2026-11-21"),
        ("2026年11月21日", None, "2026-11-21"),
        ("21.11.2026 14:30", None, "2026-11-21"),
        ("2026-11-21T10:00:00Z", None, "2026-11-21"),
        ("11/21/2026 12:00:00 AM", None, "2026-11-21"),
        ("Sa., 21.11.2026, 14:30 Uhr", "de", "2026-11-21"),
        ("sábado, 21 de noviembre de 2026", "es", "2026-11-21"),
        ("Mar 5, 2026", "es", "2026-03-05"),
        ("21 ноября 2026 \u0433.", "ru", "2026-11-21"),
        ("21 Μαΐου 2026", "el", "2026-05-21"),
        ("21 नवंबर 2026", "hi", "2026-11-21"),
        ("1º de janeiro de 2026", "pt-BR", "2026-01-01"),
        ("21 fevrier 2026", "fr", "2026-02-21"),
        ("21 KASIM 2026", "tr", "2026-11-21"),
        ("21/11/2569", "th", "2026-11-21"),
        ("21/11/2569", None, None),
        ("1405/08/30", "fa", None),
        ("2026년 11월 21일", None, "2026-11-21"),
        ("21. März 2026", "de", "2026-03-21"),
        ("21 de noviembre de 2026", "es-MX", "2026-11-21"),
        ("1.2.90", None, "1990-02-01"),
        ("3/4/2026", "en-US", "2026-03-04"),
        ("3/4/2026", "en-GB", "2026-04-03"),
        ("3/4/2026", "fr", "2026-04-03"),
        ("3.4.2026", None, "2026-04-03"),
        ("4/4/2026", None, "2026-04-04"),
        ("3/4/2026", "en", Ambiguous("2026-04-03", "2026-03-04")),
        ("3/4/2026", None, Ambiguous("2026-04-03", "2026-03-04")),
        *(
            (text, None, None)
            for text in ("29.02.2027", "tomorrow", "21 Smarch 2026", "", "13/13/2026", "21.11.", "1.2.3.4")
        ),
    ],
)
def test_a_date_is_read_as_people_type_it(text: str, language: str | None, value: Any) -> None:
    check(typed_answers.date, text, language, value)


@pytest.mark.parametrize(
    "text",
    [
        *("ann@example.com", "\u200bann@example.com\u200b", "ann@example.com.", "mailto:ann@example.com"),
        *("<ann@example.com>", "Ann Lee <ann@example.com>", " ann@EXAMPLE.com\u00a0", "ann@example.com,"),
        *("(ann@example.com)", "“ann@example.com”!", "E-Mail: ann@example.com 😀", "mailto:ann@example.com?subject=x"),
        *(wide("ann@example.com"), "ann@exam\u200bple.com"),
    ],
)
def test_an_address_is_read_as_people_paste_it(text: str) -> None:
    assert typed_answers.email(text) == "ann@example.com"


@pytest.mark.parametrize("text", ["ann lee@example.com", "ann@example.com bo@example.com", "ann@ example.com"])
def test_an_address_that_may_be_another_is_asked_for_again(text: str) -> None:
    with pytest.raises(ValueError, match="This is not an e-mail address"):
        typed_answers.email(text)


OFFERED = [{"id": "yes", "label": "✅ Yes"}, {"id": "no", "label": "❌ No"}, {"id": "later", "label": "Später"}]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        *(("YES!", "yes"), ("1.", "yes"), ("(2)", "no"), (wide("2"), "no"), ("\u0662", "no"), ("2\ufe0f\u20e3", "no")),
        *(
            ("✅", "yes"),
            ("❌\ufe0f", "no"),
            ("“yes”", "yes"),
            ("SPA\u0308TER …", "later"),
            ("Option 2", None),
            ("✅❌", None),
        ),
        *(("", None), ("!", None), ("yes no", None), ("4", None)),
    ],
)
def test_a_choice_is_read_as_people_type_it(text: str, chosen: str | None) -> None:
    check(lambda text, _: typed_answers.choice(OFFERED, text), text, None, chosen)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        *(("small", "1"), ("Small 👍", "1"), ("1\ufe0f\u20e3", "1"), ("medium", "2"), ("me\u0301dium", "2")),
        *(("\u0131ş\u0131k", "3"), ("ISIK", "3"), ("ayran", "4"), ("mas", None), ("más", "5"), ("mās", "6")),
    ],
)
def test_a_label_is_known_without_accents_and_without_the_emoji_of_its_number(text: str, chosen: str | None) -> None:
    labels = ["1\ufe0f\u20e3 Small", "2\ufe0f\u20e3 Médium", "IŞIK", "Ayran", "más", "mās"]
    offered = [{"id": f"b{number}", "label": label} for number, label in enumerate(labels, 1)]
    check(lambda text, _: typed_answers.choice(offered, text), text, None, chosen and f"b{chosen}")


def test_two_buttons_that_read_alike_are_none() -> None:
    with pytest.raises(ValueError, match="none of the buttons"):
        typed_answers.choice([{"id": "a", "label": "Really?"}, {"id": "b", "label": "Really!"}], "really")


def check(read: Any, text: str, language: str | None, value: Any) -> None:
    """Asserts that the text is read so; None: that it is not; Ambiguous: that it has these readings."""
    if value is None or isinstance(value, Ambiguous):
        with pytest.raises(type(value) if value else ValueError) as refused:
            read(text, language)
        assert getattr(refused.value, "readings", None) == getattr(value, "readings", None)
    else:
        assert read(text, language) == value
