from __future__ import annotations

import sys

import pytest

from app.lib import interpreter


def test_threads_switch_sooner_until_the_last_that_computes_has_ended() -> None:
    before = sys.getswitchinterval()

    with interpreter.sharing():
        interpreter.begin_sharing()
        both = sys.getswitchinterval()
        interpreter.end_sharing()
        one = sys.getswitchinterval()

    assert (both, one) == (pytest.approx(interpreter.SOONER_SECONDS),) * 2
    assert sys.getswitchinterval() == pytest.approx(before)


def test_what_raises_has_ended() -> None:
    with pytest.raises(ZeroDivisionError), interpreter.sharing():
        _ = 1 / 0

    assert sys.getswitchinterval() == pytest.approx(interpreter.USUAL_SECONDS)
