"""How values read on a page."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.web import formats


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, formats.NOTHING),
        (0, "0 ms"),
        (999, "999 ms"),
        (2_400, "2.4 s"),
        (180_000, "3 min"),
        (18_000_000, "5 h"),
        (172_800_000, "2 d"),
    ],
)
def test_a_duration_has_the_unit_in_which_it_is_read_best(milliseconds: float | None, text: str) -> None:
    assert formats.duration(milliseconds) == text


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "in_words", "shown"),
    [
        ("a" * 15, True, "a" * 15),
        ("a" * 16, True, "a" * 7 + "..."),
        ("aa bb cc dd ee ff", False, "aa bb..."),
        (f"aaaaa{FAMILY}bbbbbb", True, "aaaaa..."),
        (f"aa{FAMILY}bbbbbbbbb", True, f"aa{FAMILY}..."),
    ],
)
def test_a_long_text_is_cut_between_signs(text: str, *, in_words: bool, shown: str) -> None:
    assert formats.truncate(text, 10, in_words) == shown


def test_a_count_stops_where_counting_stops() -> None:
    assert formats.capped(10_000) == "10,000"
    assert formats.capped(10_001) == "10,000+"


def test_times_are_in_utc() -> None:
    at = datetime(2026, 11, 23, 6, 40, 1, 500_000, tzinfo=UTC)

    assert formats.short_time(at) == "23 Nov 2026, 06:40:01 UTC"


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("https://shop.example/hooks/orders?a=b", ("shop.example", "/hooks", "/orders?a=b")),
        ("https://shop.example/hooks/", ("shop.example", "", "/hooks")),
        ("https://shop.example", ("", "", "shop.example")),
        ("https://shop.example/", ("", "", "shop.example")),
        ("a deleted endpoint", ("", "", "a deleted endpoint")),
    ],
)
def test_an_address_is_its_host_its_path_and_the_end_of_that(address: str, parts: tuple[str, str, str]) -> None:
    assert formats.parted(address) == parts


@pytest.mark.parametrize(("count", "text"), [(512, "512 B"), (12_300, "12 kB"), (3_400_000, "3.4 MB")])
def test_bytes_have_a_unit(count: int, text: str) -> None:
    assert formats.size(count) == text


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("no address", "no address"),
        (
            "<b> https://a.example/?x=1&y=2.",
            '&lt;b&gt; <a href="https://a.example/?x=1&amp;y=2" {}>https://a.example/?x=1&amp;y=2</a>.',
        ),
        ("(HTTP://a.example/)", '(<a href="HTTP://a.example/" {}>HTTP://a.example/</a>)'),
        (
            'https://a.example/"onclick=x',
            '<a href="https://a.example/&#34;onclick=x" {}>https://a.example/&#34;onclick=x</a>',
        ),
        ("javascript:alert(1) ftp://a.example", "javascript:alert(1) ftp://a.example"),
    ],
)
def test_web_addresses_in_texts_are_links(text: str, html: str) -> None:
    assert formats.linked(text) == html.format('target="_blank" rel="noopener noreferrer nofollow"')
