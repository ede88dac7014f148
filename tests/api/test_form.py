"""Bodies and queries that no operation takes, sent to all of them."""

import pytest

from tests.builders.api import unserved_app

pytestmark = [pytest.mark.redis, pytest.mark.slow]

HUGE = "9" * 5_000
NOT_JSON = (
    '{"name": "\\ud800", "text": "x"}',
    '{"\\udfff": 1}',
    '{"definition": {"name": ["\\ud800"]}}',
    '{"n": NaN}',
    '{"n": -Infinity}',
    '{"n": 1e400}',
    f'{{"n": {HUGE}}}',
    '{"n": "\x01"}',
    "{",
    '{"n": 1} 2',
    "[" * 2_000,
    b'{"n": "\xff"}',
    "\ufeff{}",
)
OTHER_JSON = ("[]", "7", '"x"', "null", '{"deep": %s}' % ("[" * 500 + "]" * 500))
ODD_TEXTS = ("%00", "%ff", "%ED%A0%80", "%0d%0aX-Evil:1", "%F0%9F%98%80", "..%2F..", "%25", "x" * 2_000)
ODD_FIELDS = (b"\xff", b"\xe2\x82\xac", b'"', b"\x7f", b"W/", b"*, *", b"x" * 3_000)
OTHERS = ("/v1/alerts/live", "/v1/results/live", "/v1/ready")  # the last is not ready here, the others do not end


def operations(*, with_json):
    """Methods, paths with something in place of their parameters, of all operations that take JSON or all there are."""
    for path, methods in unserved_app().openapi()["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            if not with_json or "application/json" in content:
                yield method, path.replace("{", "").replace("}", "")


@pytest.mark.parametrize(("number", "body"), list(enumerate(NOT_JSON)))
def test_what_is_no_json_is_refused_everywhere(orders, check_problem, draws, number, body):
    headers = {"content-type": "application/json"}
    for method, path in draws.turn(list(operations(with_json=True)), number):
        query = {"stream": "orders"} if "/events" in path else {"key": "k"} if path.endswith("/rows") else {}
        answer = orders.request(method, path, params=query, content=body, headers=headers)
        is_file = path == "/v1/constraints"  # it may be YAML as well, whatever it says
        check_problem(answer, 400, "invalid-constraints" if is_file else "malformed-body")


@pytest.mark.parametrize(("number", "value"), list(enumerate(OTHER_JSON)))
def test_other_json_is_no_server_error(orders, draws, number, value):
    for method, path in draws.turn(list(operations(with_json=True)), number):
        url = f"{path}?stream=orders" if "/events" in path else path
        answer = orders.request(method, url, content=value, headers={"content-type": "application/json"})
        assert answer.status_code < 500, (method, path, answer.text)


def test_an_integer_beyond_64_bits_is_refused_with_its_place(orders, check_problem):
    wanted = {"url": "http://127.0.0.1:1/", "template": {"a": [1, 2**64]}}
    body = check_problem(orders.post("/v1/webhooks", json=wanted), 422, "wrong-shape")
    assert body["detail"].startswith("body.template.a.1: an integer beyond 64 bits")
    schema = {"type": "object", "maxProperties": 10**30}
    check_problem(orders.put("/v1/streams/orders/event-types/A", json=schema), 422, "wrong-shape")
    check_problem(orders.put("/v1/workflows/w", json={"content": {"tree": {"n": 10**30}}}), 422, "wrong-shape")


def test_a_parameter_that_an_operation_does_not_have_is_refused(orders, check_problem):
    body = check_problem(orders.get("/v1/patterns?steam=orders"), 422, "wrong-shape")
    assert body["detail"] == "query.steam: not a parameter of this operation; there are after, limit, stream"
    assert "there are none" in check_problem(orders.get("/v1/pipeline?x"), 422, "wrong-shape")["detail"]
    for method, path in operations(with_json=False):
        if path not in ("/v1/health", "/v1/ready"):
            check_problem(orders.request(method, f"{path}?nobody=knows"), 422, "wrong-shape")


@pytest.mark.parametrize(("number", "text"), list(enumerate(ODD_TEXTS)))
def test_odd_names_in_queries_are_no_server_error(orders, draws, number, text):
    """Those in paths are sent by test_security.py."""
    for path, methods in draws.turn(list(unserved_app().openapi()["paths"].items()), number):
        for method, operation in methods.items():
            parts = [part if "{" not in part else text for part in path.split("/")]
            names = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
            if names and path not in OTHERS:
                url = f"{'/'.join(parts)}?{'&'.join(f'{name}={text}' for name in names)}"
                answer = orders.request(method, url)
                assert answer.status_code < 500, (method, url, answer.text)


@pytest.mark.parametrize(("number", "value"), list(enumerate(ODD_FIELDS)))
def test_odd_header_fields_are_no_server_error(orders, draws, number, value):
    names = (
        "If-Match",
        "If-None-Match",
        "Idempotency-Key",
        "Last-Event-ID",
        "Accept",
        "Content-Type",
        "Content-Encoding",
    )
    for method, path in draws.turn(list(operations(with_json=False)), number):
        if path in OTHERS:
            continue
        answer = orders.request(method, path, headers=dict.fromkeys(names, value))
        assert answer.status_code < 500, (method, path, answer.text)


def test_live_alerts_refuse_what_lists_refuse(orders, check_problem):
    for query, status, code in (
        ("after=x", 400, "invalid-cursor"),
        ("stream=x", 404, "unknown-stream"),
        ("x=1", 422, "wrong-shape"),
    ):
        check_problem(orders.get(f"/v1/alerts/live?{query}"), status, code)
    check_problem(orders.get("/v1/alerts/live", headers={"Last-Event-ID": "x"}), 400, "invalid-cursor")


def test_a_request_with_too_many_faults_says_that_some_are_not_listed(orders, check_problem):
    for number in (99, 101):
        document = {"name": "s", **{f"x{place}": 1 for place in range(number)}}
        problem = check_problem(orders.post("/v1/streams", json=document), 422, "wrong-shape")
        assert len(problem["errors"]) == min(number, 100)
        assert problem["detail"].endswith("; at most 100 faults are listed") == (number > 99)
