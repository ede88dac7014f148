"""Scopes: every operation declares one, and a key that lacks it is refused before anything happens."""

import re

import pytest
from fastapi.params import Security
from fastapi.routing import APIRoute, iter_route_contexts

from api.access.door import OPEN_PATHS
from tests.builders.api import unserved_app

pytestmark = pytest.mark.redis

SCOPES = ("admin", "patterns", "ingest", "read")
ADMIN = ("/v1/keys", "/v1/audit")
INGEST = re.compile(r"/v1/(events|streams/\{stream\}/punctuations|traces/.*/end)")
ASKING = ("/v1/workflows/{name}/conformance", "/v1/aggregates/{name:path}/ask")  # questions that need a body


def operations():
    """Every operation as (method, path, declared scopes)."""
    app = unserved_app()
    for route in iter_route_contexts(app.routes):
        if isinstance(route.original_route, APIRoute):
            declared = [part.scopes for part in route.dependencies if isinstance(part, Security)]
            for method in route.methods or ():
                yield method, route.path, declared


OPERATIONS = list(operations())
GUARDED = [(method, path, declared[0][0]) for method, path, declared in OPERATIONS if path not in OPEN_PATHS]


def wanted(method, path):
    """The scope that the documentation promises."""
    if path.startswith(ADMIN):
        return "admin"
    if method == "GET" or path in ASKING:
        return "read"
    return "ingest" if INGEST.match(path) else "patterns"


def somewhere(path):
    return re.sub(r"\{[^}]*\}", "nothing", path)


def test_every_operation_declares_one_scope():
    assert len(OPERATIONS) > 50
    for method, path, declared in OPERATIONS:
        if path in OPEN_PATHS:
            assert declared == [], (method, path)
        else:
            ((scope,),) = declared
            assert scope == wanted(method, path), (method, path)


def test_no_route_is_there_twice():
    assert len({(method, path) for method, path, _ in OPERATIONS}) == len(OPERATIONS)


ENDLESS = ("/v1/alerts/live", "/v1/results/live")  # whoever may read them would wait for ever here


@pytest.mark.parametrize("held", SCOPES)
def test_a_key_may_do_what_its_scope_says_and_nothing_else(holder, check_problem, held):
    client = holder(held)
    for method, path, scope in GUARDED:
        if held in (scope, "admin") and path in ENDLESS:
            continue
        answer = client.request(method, somewhere(path))
        if held in (scope, "admin"):
            assert answer.status_code not in (401, 403), (method, path)
        else:
            assert check_problem(answer, 403, "forbidden")["scope"] == scope, (method, path)


def test_a_key_that_reads_changes_nothing_even_with_a_right_body(orders, holder, check_problem):
    reader = holder("read")
    problem = check_problem(
        reader.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p EVENT A a"}), 403, "forbidden"
    )
    assert "this operation needs the scope patterns; the API key" in problem["detail"]
    assert problem["detail"].endswith("has read")
    check_problem(reader.post("/v1/streams", json={"name": "more"}), 403, "forbidden")
    check_problem(reader.delete("/v1/patterns/p"), 403, "forbidden")
    check_problem(reader.post("/v1/events?stream=orders", json=[]), 403, "forbidden")
    assert orders.get("/v1/patterns").json()["items"] == []


def test_the_description_names_schemes_scopes_and_refusals(http):
    document = http.get("/openapi.json").json()
    schemes = document["components"]["securitySchemes"]
    assert {(scheme["type"], scheme.get("scheme"), scheme.get("name")) for scheme in schemes.values()} == {
        ("http", "bearer", None),
        ("apiKey", None, "X-API-Key"),
    }
    for method, path, scope in GUARDED:
        operation = document["paths"][path.replace(":path", "")][method.lower()]
        assert {name for part in operation["security"] for name in part} == set(schemes), path
        assert {scope for part in operation["security"] for scopes in part.values() for scope in scopes} == {scope}
        assert {"401", "403", "429"} <= set(operation["responses"]), path
    for path in ("/v1/health", "/v1/ready"):
        assert document["paths"][path]["get"]["security"] == []
