"""The typed client is generated from the description of the API, and reaches each of its operations."""

import asyncio
import re
from importlib.util import find_spec
from pathlib import Path
from typing import get_type_hints

import pytest

import typed_client
from service.client import AsyncClient, Client, InvalidRequest, ResourceChanged, wire
from service.client.resources import Resources, operation_table
from tests.api.conftest import KEY
from tests.builders.api import unserved_app


@pytest.fixture(scope="module")
def description():
    return unserved_app().openapi()


@pytest.mark.parametrize("name", ["wire.pyi", "operations.json", "resources.pyi"])
def test_generated_files_are_up_to_date(name, description):
    assert typed_client.generated(description)[name] == (typed_client.FOLDER / name).read_text(encoding="utf-8"), (
        "run 'python scripts/typed_client.py'"
    )


def test_the_objects_of_the_api_are_a_module_as_any_other():
    assert find_spec(wire.__name__) is wire.__spec__ is not None
    assert (wire.__package__, Path(wire.__file__).name) == ("service.client", "wire.py")
    assert get_type_hints(wire.NewPattern)["stream"] is str


def test_every_operation_is_a_method(description):
    described = {(verb.upper(), path) for path, verbs in description["paths"].items() for verb in verbs}
    reached = [
        (entry["method"], entry["path"])
        for operations in operation_table().values()
        for entry in operations.values()
        if entry["kind"] not in ("find", "pages")
    ]
    assert sorted(reached) == sorted(described)


class Recorder(Resources):
    """A client that records the calls that its resources make."""

    def __init__(self):
        self.calls = []

    def send(self, call):
        self.calls.append((call.method, call.path, dict(call.query), call.body, dict(call.headers)))

    def find(self, path, **query):
        self.calls.append(("GET", path, query, None, {}))

    def pages(self, path, *, most=None, on_gap=None, on_more=None, after=None, **query):
        self.calls.append(("GET", path, query, None, {}))

    live = pages


OPERATIONS = [(resource, name) for resource, operations in operation_table().items() for name in operations]


@pytest.mark.parametrize(("resource", "name"), OPERATIONS, ids=[".".join(one) for one in OPERATIONS])
def test_a_method_makes_the_described_request(description, resource, name):
    client, entry = Recorder(), operation_table()[resource][name]
    operation = description["paths"][entry["path"]][entry["method"].lower()]
    options = {one: f"of {one}" for one in (*entry.get("query", {}), *entry.get("headers", {}))}
    positional: list[object] = ["a/b ü" for _ in entry.get("arguments", ())]
    forms = operation.get("requestBody", {}).get("content", {})
    if forms:
        positional.append({"a": 1})
    if len(forms) > 1:
        options["media_type"] = list(forms)[-1]
    getattr(getattr(client, resource), name)(*positional, **options)
    ((method, path, query, body, headers),) = client.calls
    assert method == entry["method"]
    assert path == re.sub(r"{\w+}", "a%2Fb%20%C3%BC", entry["path"])
    parameters = {(one["in"], one["name"]) for one in operation.get("parameters", ())}
    assert {("query", one) for one in query} <= parameters
    left_out = {"after", "limit"} if entry["kind"] in ("pages", "live") else set()
    assert {one for place, one in parameters if place == "query"} - query.keys() <= left_out
    assert {("header", one.lower()) for one in headers} - parameters <= {("header", "content-type")}
    assert (body == {"a": 1}) == bool(forms)
    if forms:
        assert headers["Content-Type"] == list(forms)[-1]


@pytest.mark.parametrize(
    ("called", "message"),
    [
        (lambda client: client.pattern, "'pattern'; its resources are aggregates, alerts"),
        (lambda client: client.patterns.creat, "no operation 'creat', but activate, change, create"),
        (lambda client: client.patterns.get(), "patterns.get needs name"),
        (lambda client: client.patterns.get("a", "b"), "takes name by position, and 2 were given"),
        (lambda client: client.patterns.get("a", name="b"), "given name twice"),
        (lambda client: client.patterns.get("a", nam="b"), "no argument nam, but name"),
        (lambda client: client.patterns.create(), "needs body"),
        (lambda client: client.events.send([]), "needs stream"),
        (lambda client: client.tables.put("a", b"x", key=["y"]), "needs the media_type of its body: text/csv"),
    ],
)
def test_a_wrong_use_is_refused_with_what_would_be_right(called, message):
    with pytest.raises((TypeError, AttributeError), match=re.escape(message)):
        called(Recorder())


def test_resources_and_operations_complete_in_a_notebook():
    with Client("http://localhost") as client:
        assert {"patterns", "streams", "request"} <= set(dir(client))
        assert {"get", "create", "find"} <= set(dir(client.patterns))
        assert client.patterns.get.__doc__ == "Look up a pattern: GET /v1/patterns/{name}."


PATTERN = "PATTERN two\nEVENT SEQ(A a, B b)\nWITHIN 1 h"


def test_resources_of_a_real_service(api_url, stores, clock):
    with Client(api_url, KEY, patience_s=60) as client:
        stream = client.streams.create({"name": "orders", "key": "data.id"})
        assert stream["name"] == "orders"
        pattern = client.patterns.create({"stream": "orders", "text": PATTERN})
        assert (pattern["name"], pattern["version"]) == ("two", 1)
        found = client.patterns.find("two")
        assert found is not None
        client.patterns.pause("two", if_match=found.etag)
        with pytest.raises(ResourceChanged):
            client.patterns.resume("two", if_match=found.etag)
        assert client.patterns.find("three") is None
        with pytest.raises(InvalidRequest) as refused:
            client.patterns.create({"stream": "orders", "text": "PATTERN"})
        assert refused.value.code == "pattern-refused"
        table = client.tables.put("countries", "code,risk\nDE,low\n", key=["code"], media_type="text/csv")
        assert table["rows"] == 1
        assert client.tables.rows("countries").startswith(b"PAR1")
        assert [one["name"] for one in client.streams.list()] == ["orders"]
        assert client.patterns.page(limit=1)["next"] is None
        assert client.pipeline.metrics().startswith("# HELP")
        client.patterns.delete("two")
        assert list(client.patterns.list()) == []


def test_live_events_of_a_real_service_in_asyncio(api_url, stores, clock):
    events = [
        {"id": f"e{n}", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"id": "k"}, "key": "k"} for n in range(3)
    ]

    async def followed():
        async with AsyncClient(api_url, KEY, patience_s=60) as client:
            await client.streams.create({"name": "orders", "key": "data.id"})
            assert (await client.events.send(events, stream="orders"))["accepted"] == 3
            seen = []
            async for event in client.streams.live("orders", after="0"):
                seen.append(event.data["id"])
                if len(seen) == 3:
                    break
            listed = [event["id"] async for event in client.streams.events("orders", after="0", most=2)]
            return seen, listed

    assert asyncio.run(followed()) == (["e0", "e1", "e2"], ["e0", "e1"])
