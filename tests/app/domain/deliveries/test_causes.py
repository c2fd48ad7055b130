from __future__ import annotations

import pytest

from app.domain.deliveries import causes
from app.outbound.answers import ERROR_CODES


@pytest.mark.parametrize("code", ERROR_CODES)
def test_every_error_code_has_a_meaning_and_a_remedy(code: str) -> None:
    cause = causes.explain(code)

    assert cause.meaning.endswith(".")
    assert cause.remedy.endswith(".")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422, 429, 500, 503, 599])
def test_every_status_has_a_cause(status: int) -> None:
    assert causes.explain("status", status).remedy


def test_a_server_that_breaks_is_told_apart_from_one_that_refuses() -> None:
    assert "failed to process it" in causes.explain("status", 503).meaning
    assert "refused it" in causes.explain("status", 422).meaning


def test_the_status_matters_only_where_it_is_the_cause() -> None:
    assert causes.explain("gone", 410) == causes.CAUSES["gone"]
