"""What strangers send: odd names, bodies, models and patterns. Nothing is a 5xx, forges a line or reaches a file."""

import io
import logging
import re
import socket
import zipfile

import httpx
import orjson
import pytest
import structlog
from fastapi.routing import APIRoute, iter_route_contexts

from api import create_app
from service import configure_logs
from tests.builders.api import serving, unserved_app
from tests.builders.service import settings_for
from tests.builders.waiting import PATIENCE_S

pytestmark = pytest.mark.redis

MARK = "a-line-of-their-own"
NAMES = ["..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "a%2fb", "%00", "a%00b", "%0d%0aX-Forged:%201", "%ff%fe", "%ed%a0%80"]
NAMES += ["x" * 3_000, "%25s", "%e2%80%ae", "9" * 400, "%F0%9F%98%80", "..%2F.."]
BODIES = {
    "a deep list": b"[" * 20_000 + b"]" * 20_000,
    "a deep object": b'{"stream":' * 8_000 + b"1" + b"}" * 8_000,
    "many digits": b'{"stream": ' + b"9" * 50_000 + b"}",
    "a huge exponent": b'{"stream": "orders", "time": 1e999999, "id": -1e999999, "grace_s": 1e400}',
    "not a number": b'{"stream": NaN}',
    "half a pair": b'{"stream": "\\ud800", "name": "\\ud800", "text": "\\udfff", "content": "\\ud800"}',
    "NUL": b'{"stream": "orders", "name": "a\\u0000b", "text": "\\u0000", "workflow": "\\u0000", "content": "\\u0000"}',
    "all bytes": bytes(range(256)) * 8,
    "gzip": b"\x1f\x8b\x08" + bytes(1_000),
}
FOREIGN = ["application/x-www-form-urlencoded", "application/yaml", "application/xml", "text/plain"]
LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><definitions>&c;</definitions>"""
PATTERNS = {
    "types": "PATTERN p EVENT " + "|".join(f"A{number}" for number in range(3_000)) + " a",
    "alternatives": "PATTERN p EVENT SEQ(" + ",".join(f"OR(A{n} a{n},B{n} b{n})" for n in range(31)) + ")",
    "branches": "PATTERN p EVENT AND(" + ",".join(f"A{number} a{number}" for number in range(60)) + ")",
    "nesting": "PATTERN p EVENT " + "SEQ(" * 3_900 + "A a" + ")" * 3_900,
    "repetitions": "PATTERN p EVENT SEQ(A{1000} a, B{1000} b, C{1000} c)",
    "repetitions of repetitions": "PATTERN p EVENT SEQ(SEQ(SEQ(A{999} a){999}){999})",
    "brackets": "PATTERN p EVENT A a [" + "(" * 4_000 + "x = 1" + ")" * 4_000 + "]",
    "negations": "PATTERN p EVENT A a [" + "NOT " * 4_000 + "x = 1]",
    "signs": "PATTERN p EVENT A a [x = " + "-" * 4_000 + "1]",
    "conditions": "PATTERN p EVENT A a [" + " OR ".join(f"x = {number}" for number in range(1_500)) + "]",
    "wildcards": "PATTERN p EVENT A a [x LIKE '" + "%a" * 2_000 + "']",
    "digits": "PATTERN p EVENT A a [x = " + "9" * 15_000 + "]",
    "a window": "PATTERN p EVENT A a WITHIN " + "9" * 5_000 + " d",
    "a limit": "PATTERN p EVENT A a LIMIT " + "9" * 5_000,
}


def operations():
    app = unserved_app()
    for route in iter_route_contexts(app.routes):
        if isinstance(route.original_route, APIRoute):
            for method in route.methods or ():
                yield method, route.path


OPERATIONS = list(operations())


def bodies():
    """Methods, paths and media types of what takes a body: those that are described, and in turn one that is not."""
    paths = unserved_app().openapi()["paths"]
    for number, (method, path) in enumerate(OPERATIONS):
        if method not in ("GET", "DELETE"):
            operation = paths[path.replace(":path}", "}")][method.lower()]
            taken = list(operation.get("requestBody", {}).get("content", ()))
            yield method, path, [*taken, FOREIGN[number % len(FOREIGN)]]


@pytest.fixture(scope="module")
def roomy_url(server_url, shared_clock):
    """An API with the limits that it has by default."""
    with serving(create_app(settings_for(server_url), shared_clock)) as url:
        yield url


@pytest.fixture
def roomy(roomy_url, stores, clock):
    """A client of this API, which has the stream ``orders``."""
    with httpx.Client(base_url=roomy_url, timeout=300, verify=False) as client:
        assert client.post("/v1/streams", json={"name": "orders", "end_events": ["Z"]}).status_code == 201
        yield client


@pytest.fixture
def lines():
    """The log of this process, as it is written."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    out = io.StringIO()
    configure_logs("DEBUG", out)
    yield lambda: out.getvalue().splitlines()
    root.handlers[:], level = before
    root.setLevel(level)
    structlog.reset_defaults()


def send(client, method, raw_path, **options):
    """Send a path as it is, without the tidying of a client."""
    request = client.build_request(method, "/", **options)
    request.url = request.url.copy_with(raw_path=raw_path.encode())
    return client.send(request)


def test_a_key_does_not_widen_itself(holder, http, check_problem):
    for held in (["patterns"], ["read", "ingest", "patterns"]):
        client = holder(*held)
        key_id = http.get("/v1/keys").json()["items"][-1]["id"]
        for method, path, body in (
            ("POST", "/v1/keys", {"name": "mine", "scopes": ["admin"]}),
            ("POST", f"/v1/keys/{key_id}/rotate", {"scopes": ["admin"]}),
            ("POST", f"/v1/keys/{key_id}/rotate", None),
            ("GET", f"/v1/keys/{key_id}", None),
            ("GET", "/v1/keys", None),
            ("DELETE", f"/v1/keys/{key_id}", None),
            ("GET", "/v1/audit", None),
        ):
            assert client.request(method, path, json=body).status_code == 403, (method, path)
    assert {scope for key in http.get("/v1/keys").json()["items"] for scope in key["scopes"]} <= {
        "read",
        "ingest",
        "patterns",
    }


def test_rights_stay_as_they_are_when_a_key_is_rotated(http):
    key = http.post("/v1/keys", json={"name": "n", "scopes": ["read"], "streams": ["orders"]}).json()
    rotated = http.post(f"/v1/keys/{key['id']}/rotate").json()
    assert (rotated["scopes"], rotated["streams"]) == (["read"], ["orders"])
    headers = {"Authorization": f"Bearer {rotated['token']}"}
    assert http.get("/v1/streams/payments", headers=headers).status_code == 403


@pytest.mark.slow
def test_odd_names_are_refused_and_never_a_fault(orders, draws):
    for number, (method, path) in enumerate(OPERATIONS):
        if "{" in path:
            for name in draws.turn(NAMES, number):
                asked = name.join(re.split(r"\{[^}]*\}", path))
                answer = send(orders, method, asked)
                assert answer.status_code < 500, (method, asked[:100])
                assert "x-forged" not in answer.headers


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "a\0b", "a\nb", "", " ", "\u202ea"])
def test_nothing_gets_an_odd_name(orders, name):
    assert orders.post("/v1/streams", json={"name": name}).status_code in (400, 422)
    text = f"PATTERN {name} EVENT A a"
    assert orders.post("/v1/patterns", json={"stream": "orders", "text": text}).status_code == 400
    tree = orjson.dumps({"name": name, "tree": "A"})
    quoted = "".join(f"%{byte:02x}" for byte in name.encode())
    headers = {"content-type": "application/json"}
    assert send(orders, "PUT", f"/v1/workflows/{quoted}", content=tree, headers=headers).status_code in (
        400,
        404,
        405,
        422,
    )
    assert [stream["name"] for stream in orders.get("/v1/streams").json()["items"]] == ["orders"]


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a\0b", "x" * 5_000])
def test_backtests_read_no_other_files(server_url, stores, clock, tmp_path, path, check_problem):
    settings = settings_for(server_url, backtest_dir=tmp_path)
    with (
        serving(create_app(settings, clock)) as url,
        httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as client,
    ):
        client.post("/v1/streams", json={"name": "orders", "end_events": ["Z"]})
        body = {"stream": "orders", "pattern": "PATTERN p EVENT A a", "source": {"path": path}}
        check_problem(client.post("/v1/backtests", json=body), 400, "backtest-refused")


@pytest.mark.parametrize(("number", "what"), list(enumerate(BODIES)), ids=BODIES)
def test_odd_bodies_are_never_a_fault(orders, draws, number, what):
    for method, path, kinds in draws.turn(list(bodies()), number):
        asked = re.sub(r"\{[^}]*\}", "x", path.replace("{stream}", "orders")) + "?stream=orders"
        for kind in kinds:
            answer = orders.request(method, asked, content=BODIES[what], headers={"content-type": kind})
            assert answer.status_code < 500, (method, path, kind)


def test_a_very_long_address_is_refused(http):
    for path in ("/v1/streams/" + "x" * 50_000, "/v1/alerts?stream=" + "x" * 50_000, "/v1/alerts?" + "a=1&" * 10_000):
        assert http.get(path).status_code < 500
    with socket.create_connection((http.base_url.host, http.base_url.port)) as connection:
        connection.sendall(b"GET /v1/streams/" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 4")
    assert http.get("/v1/streams").status_code == 200


def test_an_oversized_body_of_any_operation_is_a_413(http):
    huge = b" " * 200_000
    for method, path in OPERATIONS:
        if method not in ("GET", "DELETE"):
            assert http.request(method, re.sub(r"\{[^}]*\}", "x", path), content=huge).status_code == 413, path


@pytest.mark.parametrize("what", PATTERNS)
def test_pattern_bombs_are_bounded(roomy, what):
    """Taken or refused with a reason, and whoever looks at what was taken gets an answer."""
    answer = roomy.post("/v1/patterns", json={"stream": "orders", "text": PATTERNS[what]})
    assert answer.status_code in (201, 400, 413), answer.text[:300]
    if answer.status_code == 201:
        assert roomy.post("/v1/constraints", json={"stream": "orders", "constraints": ["prior(A1, B1)"]}).is_success
        for path in ("/v1/patterns/p", "/v1/constraints/orders/analysis"):
            assert roomy.get(path).status_code == 200


def test_what_is_too_large_to_be_explained_says_so(roomy):
    branches = ",".join(f"A{number} a{number}" for number in range(6))
    text = f"PATTERN p EVENT AND({branches}, SEQ(B{{20}} b, C{{20}} c))"
    taken = roomy.post("/v1/patterns", json={"stream": "orders", "text": text}).json()
    assert "too many steps or alternatives" in taken["warnings"][0]
    shown = roomy.get("/v1/patterns/p").json()
    assert (shown["failing_conditions"], shown["warnings"]) == ([], taken["warnings"])


def test_what_is_reasoned_about_in_part_says_so(roomy):
    text = "PATTERN p EVENT SEQ(A{60} a, B{60} b)"
    taken = roomy.post("/v1/patterns", json={"stream": "orders", "text": text}).json()
    assert "constraints know the last iteration of each repetition only" in taken["warnings"][0]


def archive():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("model.bpmn", bytes(10_000_000))
    return out.getvalue()


@pytest.mark.parametrize(
    "model",
    [
        LAUGHS,
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><a/>',
        b'<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1:9/b"> %b;]><a/>',
        b"<a>" * 10_000,
        b"<a " + b"".join(b'b%d="" ' % number for number in range(4_000)) + b"/>",
        b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        b"!!python/object/apply:os.system [id]\n",
        b"[" * 40_000,
        archive(),
    ],
)
def test_model_bombs_are_refused(orders, model):
    for kind in ("application/xml", "application/yaml", "application/json"):
        answer = orders.put("/v1/workflows/w", content=model, headers={"content-type": kind})
        assert answer.status_code in (400, 413, 422), (kind, answer.text[:300])
        assert "root:" not in answer.text
    envelope = {"content": model.decode("latin-1")}
    assert orders.put("/v1/workflows/w", json=envelope).status_code in (400, 413, 422)


def test_nothing_forges_a_line_of_the_log(lines, server_url, stores, clock):
    forged = f'\n{{"event": "{MARK}"}}\r\n{MARK}\x1b[2K\u2028{MARK}'
    quoted = "".join(f"%{byte:02x}" for byte in forged.encode())
    settings = settings_for(server_url, api_key="a-key-for-tests")
    with (
        serving(create_app(settings, clock)) as url,
        httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as client,
    ):
        right = {b"Authorization": b"Bearer a-key-for-tests", b"User-Agent": f"x{MARK}\x9b31m".encode("latin-1")}
        for path in ("/v1/streams/", "/v1/patterns/", "/v1/alerts/", "/v1/keys/", "/v1/alerts?after="):
            assert send(client, "GET", path + quoted, headers=right).status_code in (400, 404)
        assert send(client, "DELETE", f"/v1/patterns/{quoted}", headers=right).status_code == 404
        assert client.post("/v1/keys", json={"name": forged, "scopes": ["read"]}, headers=right).status_code == 400
        assert client.post("/v1/streams", json={"name": forged}, headers=right).status_code == 400
        for wrong in (f"Bearer {MARK}\x9b2K", f"Bearer fs_{'0' * 16}_{'0' * 64}"):
            assert client.get("/v1/streams", headers={b"Authorization": wrong.encode("latin-1")}).status_code == 401
        for name in (b"Authorization", b"User-Agent"):
            answer = client.get("/v1/streams", headers={**right, name: f"Bearer {MARK}\x1b[2K".encode("latin-1")})
            assert (answer.status_code, MARK in answer.text) == (400, False)
    found = [orjson.loads(line) for line in lines()]
    assert "key-refused" in {line["event"] for line in found}
    assert not [line for line in found if MARK in str(line["event"])]
    assert not [line for line in lines() if "a-key-for-tests" in line or "0" * 64 in line]
