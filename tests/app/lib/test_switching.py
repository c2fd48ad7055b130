from __future__ import annotations

import sys

import pytest

from app.lib import switching


def test_threads_switch_sooner_until_the_last_that_computes_has_ended() -> None:
    before = sys.getswitchinterval()

    with switching.sharing():
        switching.begin_sharing()
        both = sys.getswitchinterval()
        switching.end_sharing()
        one = sys.getswitchinterval()

    assert (both, one) == (pytest.approx(switching.SOONER_SECONDS),) * 2
    assert sys.getswitchinterval() == pytest.approx(before)


def test_what_raises_has_ended() -> None:
    with pytest.raises(ZeroDivisionError), switching.sharing():
        _ = 1 / 0

    assert sys.getswitchinterval() == pytest.approx(switching.USUAL_SECONDS)
