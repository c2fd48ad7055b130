"""The examples that verify signatures, in every language but Python, which `make test` covers."""

from __future__ import annotations

import pytest

from tests.conformance.tools import PATH
from tests.docs.verifiers import LANGUAGES, Program, VerifierTests, each_language


@pytest.mark.parametrize("program", each_language(*LANGUAGES.keys() - {"python"}), indirect=True, scope="class")
class TestExamples(VerifierTests):
    pass


@pytest.fixture(scope="class")
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(request.param, tmp_path_factory.mktemp(request.param), PATH)
