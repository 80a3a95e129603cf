"""Every route answers by its description in /openapi.json, for requests that schemathesis generates."""

import pytest
from conftest import decision, examples, fixed_sources
from hypothesis import HealthCheck, Phase, given, seed, settings

import jidomem
from jidomem.serve.app import create_app
from jidomem.serve.routes import ROUTES

schemathesis = pytest.importorskip("schemathesis")
from schemathesis.checks import load_all_checks  # noqa: E402

PARTS = {"project": "p", "name": "facts", "id": "00000001"}
CHECKS = ["status_code_conformance", "content_type_conformance", "response_schema_conformance"]
EXAMPLES = 4
SLOW = {"/projects/{project}/check"}


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("described") / "root", project="p", sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", decision())
        memory.writer.start_session("p", "morning", agent="ana")
        yield schemathesis.openapi.from_wsgi("/openapi.json", create_app(memory))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_answers_by_its_description_for_any_request(described, route):
    load_all_checks()
    checks = list(schemathesis.checks.CHECKS.get_by_names(CHECKS))
    operation = described[route.path][route.method]
    parts = {name: value for name, value in PARTS.items() if f"{{{name}}}" in route.path}
    statuses = []

    for mode in schemathesis.GenerationMode:
        if mode is schemathesis.GenerationMode.NEGATIVE and not (route.takes or route.headers or route.reads):
            continue  # there is nothing to get wrong

        @seed(8700)
        @settings(max_examples=1 if route.path in SLOW else examples(EXAMPLES), database=None,
                  phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(operation.as_strategy(generation_mode=mode, path_parameters=parts or None))
        def check(case):
            response = case.call()
            case.validate_response(response, checks=checks)
            assert response.status_code != 500, response.text  # a query may be late (503): some have no time
            statuses.append(response.status_code)

        check()

    assert statuses
