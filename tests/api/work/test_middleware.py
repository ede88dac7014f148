"""Operations that workers answer: as others are, and with what the limit was."""

import socket
import threading
import time

import httpx
import orjson
import pytest

from api import create_app
from api.app import _bounded_routes
from api.testing import serving
from service.testing import private_server, settings_for

KEY = "a-key-for-tests"
PATIENCE_S = 300.0
MIB = 1024 * 1024
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
    with httpx.Client(base_url=url, timeout=PATIENCE_S, headers={"Authorization": f"Bearer {KEY}"}) as client:
        client.post("/v1/streams", json={"name": "orders", "key": "data.id"})
        yield client


def test_what_is_not_known_to_be_small_is_marked():
    marked = {(method, route.path) for route in _bounded_routes() for method in (route.methods or ())}
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
    assert found.headers["etag"] == made.headers["etag"]
    assert http.head("/v1/patterns/p").headers["etag"] == made.headers["etag"]
    refused = http.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p"})
    assert (refused.status_code, refused.headers["content-type"]) == (400, "application/problem+json")
    assert http.get("/v1/patterns/p", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_change_is_audited_with_its_status(http):
    http.put("/v1/workflows/audited", content=CHAIN, headers={"Content-Type": "application/yaml"})
    newest = http.get("/v1/audit").json()["items"][0]
    assert (newest["route"], newest["status"]) == ("/v1/workflows/{name}", 201)


def test_a_key_lets_a_request_through_once(http):
    body = {**PATTERN, "text": "PATTERN once EVENT SEQ(A a, B b)"}
    first, again = [http.post("/v1/patterns", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert (first.status_code, again.status_code, first.json()) == (201, 201, again.json())
    assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        ({"max_time_s": 0.05}, "FORESTALL_WORK__MAX_TIME_S"),
        ({"max_answer_bytes": 100}, "FORESTALL_WORK__MAX_ANSWER_BYTES"),
    ],
)
def test_what_is_beyond_a_limit_says_which_and_may_be_sent_again(server_url, limits, setting):
    with serving(create_app(settings_for(server_url, work=limits), has_workers=True)) as url:
        headers = {"Content-Type": "application/yaml", "Idempotency-Key": "again"}
        tree = CHAIN.replace("sequence", "parallel")
        for _ in range(2):
            answer = httpx.put(f"{url}/v1/workflows/w", content=tree, headers=headers, timeout=PATIENCE_S)
            assert (answer.status_code, answer.json()["code"]) == (422, "too-much-work")
            assert answer.json()["setting"] == setting
            assert setting in answer.json()["detail"]
            if "ANSWER" in setting:
                break  # it was done, and is known by its key


def test_the_others_are_answered_while_one_works(server_url):
    work = {"processes": 1, "max_time_s": 3.0}
    with serving(create_app(settings_for(server_url, work=work), has_workers=True)) as url:
        slow = threading.Thread(target=put_slow, args=(url,))
        slow.start()
        answered = 0
        while slow.is_alive():
            assert httpx.get(f"{url}/v1/streams", timeout=PATIENCE_S).status_code == 200
            answered += 1
            time.sleep(0.05)
        slow.join()
    assert answered > 10


def put_slow(url):
    body = {"model": "x", "traces": [["A"] * 100] * 10}
    httpx.post(f"{url}/v1/workflows/none/conformance", json=body, timeout=PATIENCE_S)
    tree = "tree:\n  sequence:\n" + "".join(f"  - Activity{number}\n" for number in range(9000))
    httpx.put(f"{url}/v1/workflows/slow", content=tree, headers={"Content-Type": "application/yaml"}, timeout=60)


def test_work_stops_when_the_client_has_gone(server_url):
    settings = settings_for(server_url, work={"processes": 1, "max_time_s": 3600.0})
    with serving(create_app(settings, has_workers=True)) as url:
        tree = orjson.dumps({"tree": {"sequence": [f"Activity{number}" for number in range(9000)]}})
        host, port = url.removeprefix("http://").split(":")
        head = f"PUT /v1/workflows/w HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: "
        with socket.create_connection((host, int(port))) as client:
            client.sendall(head.encode() + str(len(tree)).encode() + b"\r\n\r\n" + tree)
            time.sleep(0.3)
        # The only process is free again, or this would wait for an hour.
        answer = httpx.get(f"{url}/v1/workflows/w/picture.svg", timeout=60)
        assert answer.status_code == 404
