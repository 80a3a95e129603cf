"""Every route answers by its description in /openapi.json, for requests that schemathesis generates."""

import json
import re

import pytest
from conftest import decision, examples, fixed_sources, intent
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


@pytest.fixture
def client(memory):
    memory.writer.submit_intent("p", decision(topic="store", about=["src/a.py"]))
    return create_app(memory).test_client()


def names_of(schema, value, schemas):
    """Return the members of *value*, at any depth, that *schema* does not name, and fail if it does not hold."""
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        return {name for each in value for name in names_of(schema.get("items", {}), each, schemas)}
    if not isinstance(value, dict) or "properties" not in schema:
        return set()
    of_members = {n for name, part in schema["properties"].items() for n in names_of(part, value.get(name), schemas)}
    return (value.keys() - schema["properties"].keys()) | of_members


@pytest.mark.parametrize(
    ("method", "path", "at", "body"),
    [
        ("get", "/projects", "", None), ("get", "/projects/{project}", "", None),
        ("get", "/projects/{project}/memories/{id}", "", None),
        ("get", "/projects/{project}/memories/{id}/why", "", None),
        ("get", "/projects/{project}/briefing", "?about=src/a.py", None),
        ("get", "/projects/{project}/governing", "?file=src/a.py&file=src/b.py", None),
        ("post", "/projects/{project}/recall", "", {"query": "oxigraph", "explain": True}),
        ("post", "/projects/{project}/recall", "", {"query": "oxigraph", "min_score": 1}),
        ("post", "/projects/{project}/intents", "", intent(due="2027-01-01", type="task")),
        ("post", "/projects/{project}/intents", "", intent(**{"https://a.example/tag": ["x", 1]})),
        ("post", "/projects/{project}/intents", "", intent(tags=["x"])),
        ("post", "/projects/{project}/intents", "", decision(topic="store", summary="Use SQLite")),
    ],
)  # fmt: skip
def test_the_description_has_every_member_of_answers_and_requests(client, method, path, at, body):
    import jsonschema  # takes a second, which each test process would spend

    document = client.get("/openapi.json").json
    operation, schemas = document["paths"][path][method], document["components"]["schemas"]

    address = re.sub(r"\{(\w+)\}", lambda part: PARTS[part[1]], path) + at
    answer = client.open(address, method=method.upper(), json=body)

    content = operation["responses"][str(answer.status_code)]["content"][answer.mimetype]
    whole = {"components": document["components"]}
    schema = content["schema"]
    if schema == {"$ref": "#/components/schemas/Outcomes"}:
        schema = {"$ref": "#/components/schemas/Receipt"}
    jsonschema.validate(answer.json, {**schema, **whole})
    assert names_of(schema, answer.json, schemas) == set()
    if body is not None and answer.status_code < 300:
        asked = operation["requestBody"]["content"]["application/json"]["schema"]
        jsonschema.validate(json.loads(json.dumps(body)), {**asked, **whole})


def test_every_status_of_a_refusal_is_described(client):
    paths = client.get("/openapi.json").json["paths"]

    for operation in (each for methods in paths.values() for each in methods.values()):
        assert {"400", "403", "408", "414", "431", "500"} <= operation["responses"].keys()
    for path in ("journal", "check"):
        assert "429" in paths[f"/projects/{{project}}/{path}"]["get"]["responses"]
