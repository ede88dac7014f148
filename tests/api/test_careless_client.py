"""Twenty requests that a careless client makes, each with its answer: it names the place and what would be right."""

import time

import pytest

from api.errors import WrongShape
from api.requests.form import parse_document

pytestmark = pytest.mark.redis

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("request_line", "body", "where", "message"),
    [
        ("PATCH /v1/streams/orders", {"lateness": "5s"}, "body.lateness", "Input should be a valid number"),
        ("PATCH /v1/streams/orders", {"lateness": "5s"}, "body.lateness", "or 'auto', or an object"),
        ("PATCH /v1/streams/orders", {"lateness": "5"}, "body.lateness", "Input should be a number"),
        ("PATCH /v1/streams/orders", {"quiet_after": True}, "body.quiet_after", "Input should be a number"),
        ("POST /v1/streams", {"name": "s", "derived": "no"}, "body.derived", "Input should be true or false"),
        (
            "POST /v1/streams",
            {"name": "s", "lateness": {"mode": "auto", "at_most_s": "9"}},
            "body.lateness.at_most_s",
            "a num",
        ),
        ("POST /v1/streams", '{"name": "s", "key": "data.x", "key": "data.y"}', "body", "'key' is given twice"),
        ("POST /v1/webhooks", '{"url": "http://x/", "template": {"a": 1, "a": 2}}', "body", "'a' is given twice"),
        ("POST /v1/streams", {"nam": "s"}, "body.nam", "did you mean name?"),
        ("POST /v1/backtests", {"stream": "orders", "pattern": {"txt": "x"}}, "body.pattern.txt", "did you mean text?"),
        ("GET /v1/alerts?since=yesterday", None, "query.since", "time 'yesterday' is not RFC 3339"),
        ("GET /v1/alerts?limit=many", None, "query.limit", "valid integer, got 'many'"),
        ("GET /v1/alerts?limit=1&limit=2", None, "query.limit", "given twice"),
        ("GET /v1/patterns?stream=orders&stream=gen", None, "query.stream", "given twice"),
        ("GET /v1/traces", None, "query.stream", "Field required"),
        ("GET /v1/alerts?steam=orders", None, "query.steam", "not a parameter of this operation"),
    ],
)
def test_a_request_of_another_form_is_refused_with_each_place_once(
    orders, check_problem, request_line, body, where, message
):
    method, path = request_line.split()
    content = {"content": body, "headers": JSON} if isinstance(body, str) else {"json": body}
    problem = check_problem(orders.request(method, path, **content), 422, "wrong-shape")
    places = [one["where"] for one in problem["errors"]]
    assert len(set(places)) == len(places)
    assert message in {one["where"]: one["message"] for one in problem["errors"]}[where]
    assert f"{where}: " in problem["detail"]
    assert not any(word in problem["detail"] for word in ("function-wrap", "constrained", "Value error", "Model"))


def test_a_precondition_without_quotes_is_refused_with_its_place(orders, check_problem):
    answer = orders.patch("/v1/streams/orders", json={}, headers={"If-Match": "abc"})
    assert [one["where"] for one in check_problem(answer, 422, "wrong-shape")["errors"]] == ["header.If-Match"]


@pytest.mark.parametrize("action", ["rotate-secret", "redeliver", "test"])
def test_a_body_that_may_be_left_out_needs_no_media_type(http, action):
    webhook = http.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/"}).json()["id"]
    assert http.post(f"/v1/webhooks/{webhook}/{action}").status_code in (200, 202)


def test_a_member_given_twice_among_many_is_found_at_once():
    names = ", ".join(f'"k{number}": 1' for number in range(20_000))
    begin_s = time.process_time()
    with pytest.raises(WrongShape, match="'k19999' is given twice"):
        parse_document(f'{{{names}, "k19999": 2}}'.encode())
    assert time.process_time() - begin_s < 2


def test_the_answer_to_many_or_long_unknown_members_is_short(http, check_problem):
    many = http.post("/v1/streams", json={f"k{number}": 1 for number in range(5_000)})
    assert len(check_problem(many, 422, "wrong-shape")["errors"]) == 100
    for body in ({"x" * 90_000: 1}, f'{{"{"x" * 40_000}": 1, "{"x" * 40_000}": 1}}'):
        content = {"content": body, "headers": JSON} if isinstance(body, str) else {"json": body}
        assert len(http.post("/v1/streams", **content).content) < 2_000
