from __future__ import annotations

import pytest

from app.lib.graphemes import cut

FAMILY, FLAG, ACCENT = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e6\U0001f1f9", "e\u0301"


@pytest.mark.parametrize("sign", [FAMILY, FLAG, ACCENT])
def test_no_part_of_a_sign_is_left_over(sign: str) -> None:
    text = f"ab{sign}cd"

    assert {cut(text, most) for most in range(2, 2 + len(sign))} == {"ab"}
    assert cut(text, 2 + len(sign)) == f"ab{sign}"
    assert cut(text, len(text)) == text


def test_a_sign_that_is_too_long_by_itself_is_cut() -> None:
    assert cut(FAMILY, 2) == FAMILY[:2]
    assert cut("ab", 0) == ""
