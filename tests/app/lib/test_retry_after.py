"""What other servers write into `Retry-After`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.lib.retry_after import seconds

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "waited"),
    [
        ("12", 12),
        (" 0 ", 0),
        ("999999999", 3600),
        ("Sun, 29 Nov 2026 12:00:12 GMT", 12),
        ("Sunday, 29-Nov-26 12:00:12 GMT", 12),
        ("Sun Nov 29 12:00:12 2026", 12),
        ("Sun, 29 Nov 2026 14:00:12 +0200", 12),
        ("Sun, 29 Nov 2026 11:00:00 GMT", 0),
        ("Mon, 30 Nov 2026 12:00:00 GMT", 3600),
        *[
            (unreadable, 0)
            for unreadable in ("", "soon", "-5", "1.5", "١٢", "9" * 5000, "Sun, 99 Nov 2026 12:00:12 GMT")
        ],
        ("Fri, 31 Dec 9999 23:59:59 -2359", 3600),
    ],
)
def test_it_is_a_number_of_seconds_or_a_date(value: str, waited: float) -> None:
    assert seconds(value, AT) == waited
