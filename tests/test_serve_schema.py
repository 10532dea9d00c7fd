"""The OpenAPI document, fuzzed: no failure of the server, no answer that the document does not describe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from starlette.testclient import TestClient  # noqa: E402

from abound.serve.web.app import make_app  # noqa: E402
from abound.serve.web.desk import Desk, Settings  # noqa: E402
from serve_data import TOKEN, make_model, make_vector_model  # noqa: E402

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("schema")
    files: dict[str, Path] = {"drinks": make_model(folder / "drinks"), "vectors": make_vector_model(folder / "vectors")}
    app = make_app(Desk(Settings(files, TOKEN)))
    with TestClient(app):
        yield app


def fuzz(app: Any, n_cases: int) -> int:
    """Try so many requests, well-formed and not, spread over all operations; return how many were answered."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [result.ok() for result in schema.get_all_operations()]
    checks = [
        schemathesis.checks.not_a_server_error,
        schemathesis.specs.openapi.checks.status_code_conformance,
        schemathesis.specs.openapi.checks.content_type_conformance,
        schemathesis.specs.openapi.checks.response_schema_conformance,
        schemathesis.specs.openapi.checks.response_headers_conformance,
    ]
    n_answered = 0
    # Bodies have more to go wrong than addresses.
    shares = {operation.label: 8 if operation.body else 1 for operation in operations}
    modes = schemathesis.GenerationMode
    for operation in operations:
        for mode in (modes.POSITIVE, modes.NEGATIVE):

            @settings(
                max_examples=-(-n_cases * shares[operation.label] // (2 * sum(shares.values()))),
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode), name=st.sampled_from(["drinks", "vectors", None]))
            def try_one(case: Any, name: str | None) -> None:
                nonlocal n_answered
                if name is not None and isinstance(case.path_parameters, dict) and "m" in case.path_parameters:
                    case.path_parameters["m"] = name
                answer = case.call(headers=HEADERS)
                case.validate_response(answer, checks=checks)
                assert answer.status_code < 500
                n_answered += 1

            # What takes no parameter cannot be asked wrongly.
            with suppress(Unsatisfiable):
                try_one()
    return n_answered


def test_a_hundred_cases(app: Any) -> None:
    assert fuzz(app, 120) >= 100


@pytest.mark.long
def test_two_thousand_cases(app: Any) -> None:
    assert fuzz(app, 2600) >= 2000
