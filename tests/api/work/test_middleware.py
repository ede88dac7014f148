"""Operations that workers answer: as others are, and with what the limit was."""

import importlib
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from api import create_app
from api.app import bounded_routes
from api.work import BoundedWork, WorkPool
from tests.builders.api import serving, tag
from tests.builders.service import private_server, settings_for

KEY = "a-key-for-tests"
PATIENCE_S = 300.0
CHAIN = "tree:\n  sequence:\n" + "".join(f"  - Activity{number}\n" for number in range(30))
PATTERN = {"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)"}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with private_server(tmp_path_factory.mktemp("work")) as redis_url:
        work = {"processes": 1, "max_time_s": 30.0}
        app = create_app(settings_for(redis_url, api_key=KEY, work=work), has_workers=True)
        with serving(app) as served:
            yield served


@pytest.fixture
def http(url):
    with httpx.Client(
        base_url=url, timeout=PATIENCE_S, headers={"Authorization": f"Bearer {KEY}"}, verify=False
    ) as client:
        client.post("/v1/streams", json={"name": "orders", "key": "data.id"})
        yield client


def test_what_is_not_known_to_be_small_is_marked():
    marked = {(method, route.path) for route in bounded_routes() for method in (route.methods or ())}
    assert marked >= {
        ("PUT", "/v1/workflows/{name}"),
        ("GET", "/v1/workflows/{name}/picture.svg"),
        ("POST", "/v1/workflows/{name}/conformance"),
        ("POST", "/v1/constraints"),
        ("GET", "/v1/constraints/{stream}/analysis"),
        ("POST", "/v1/patterns"),
        ("POST", "/v1/patterns/dry-run"),
        ("PUT", "/v1/streams/{stream}/event-types/{event_type:path}"),
    }
    assert ("POST", "/v1/events") not in marked


def test_a_worker_answers_as_the_api_does(http):
    made = http.post("/v1/patterns", json=PATTERN)
    assert made.status_code in (200, 201)
    found = http.get("/v1/patterns/p")
    assert found.json()["text"] == PATTERN["text"]
    assert tag(found) == made.headers["etag"]
    assert http.head("/v1/patterns/p").headers["etag"] == found.headers["etag"]
    refused = http.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p"})
    assert (refused.status_code, refused.headers["content-type"]) == (400, "application/problem+json")
    assert http.get("/v1/patterns/p", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_change_is_audited_with_its_status(http):
    http.put("/v1/workflows/audited", content=CHAIN, headers={"Content-Type": "application/yaml"})
    newest = http.get("/v1/audit").json()["items"][0]
    assert (newest["route"], newest["http_status"]) == ("/v1/workflows/{name}", 201)


def test_a_key_lets_a_request_through_once(http):
    body = {**PATTERN, "text": "PATTERN once EVENT SEQ(A a, B b)"}
    first, again = [http.post("/v1/patterns", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert (first.status_code, again.status_code, first.json()) == (201, 201, again.json())
    assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        ({"max_time_s": 0.001}, "FORESTALL_WORK__MAX_TIME_S"),
        ({"max_answer_bytes": 100}, "FORESTALL_WORK__MAX_ANSWER_BYTES"),
    ],
)
def test_what_is_beyond_a_limit_says_which_and_may_be_sent_again(server_url, limits, setting):
    settings = settings_for(server_url, api_key=KEY, work=limits)
    with serving(create_app(settings, has_workers=True)) as url:
        headers = {"Content-Type": "application/yaml", "Idempotency-Key": "again", "Authorization": f"Bearer {KEY}"}
        tree = CHAIN.replace("sequence", "parallel")
        for _ in range(2):
            answer = httpx.put(f"{url}/v1/workflows/w", content=tree, headers=headers, timeout=PATIENCE_S, verify=False)
            assert (answer.status_code, answer.json()["code"]) == (422, "too-much-work")
            assert answer.json()["setting"] == setting
            assert setting in answer.json()["detail"]
            if "ANSWER" in setting:
                break  # it was done, and is known by its key


@pytest.fixture
def greedy_url(monkeypatch):
    """An application in which workers answer /spin and /id, one at a time, for an hour if need be."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    greedy = importlib.import_module("greedy")
    settings = settings_for("redis://127.0.0.1:1", work={"processes": 1, "max_time_s": 3600.0})
    pool = WorkPool(greedy.make, settings)

    @asynccontextmanager
    async def lifespan(_):
        async with pool:
            yield {}

    app = FastAPI(lifespan=lifespan)
    app.add_api_route("/here", lambda: "here")
    routes = [Route(path, lambda: None) for path in ("/spin", "/id")]
    app.add_middleware(BoundedWork, pool=pool, limits=settings.work, routes=routes)
    with serving(app) as url:
        yield url


def asked_for(url, path):
    """A connection on which a request was sent."""
    host, port = url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return client


def test_the_others_are_answered_while_one_works_and_work_ends_when_its_client_goes(greedy_url):
    with httpx.Client(base_url=greedy_url, timeout=PATIENCE_S, verify=False) as client:
        before = client.get("/id")
        with asked_for(greedy_url, "/spin"):
            assert client.get("/here").json() == "here"
        after = client.get("/id")  # the only process is free again, or this would wait for an hour
    assert (before.status_code, after.status_code) == (200, 200)
    assert before.json() != after.json()
