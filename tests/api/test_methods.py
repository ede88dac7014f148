"""HEAD, OPTIONS and methods that a path does not have."""

import pytest

pytestmark = pytest.mark.redis

PATHS = ["/v1/streams", "/v1/streams/orders", "/v1/streams/nowhere", "/v1/alerts", "/v1/health", "/metrics", "/docs"]


@pytest.mark.parametrize("path", PATHS)
def test_head_is_get_without_content(orders, path):
    get, head = orders.get(path), orders.head(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    names = ["content-type", "etag"]
    if path != "/metrics":  # which counts these very requests
        names.append("content-length")
    assert [head.headers.get(name) for name in names] == [get.headers.get(name) for name in names]


def test_head_of_what_never_ends_ends(orders):
    answer = orders.head("/v1/alerts/live")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert orders.head("/v1/alerts/live?stream=nowhere").status_code == 404


def test_head_asks_for_the_key(stranger):
    assert stranger.head("/v1/streams").status_code == 401


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/streams", "GET, HEAD, OPTIONS, POST"),
        ("/v1/streams/orders", "DELETE, GET, HEAD, OPTIONS, PATCH"),
        ("/v1/events", "OPTIONS, POST"),
        ("/v1/workflows/order", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("/v1/health", "GET, HEAD, OPTIONS"),
    ],
)
def test_options_and_405_tell_the_methods(http, check_problem, path, allowed):
    options = http.options(path)
    assert (options.status_code, options.headers["allow"], options.content) == (204, allowed, b"")
    for method in ("TRACE", "PROPFIND"):
        answer = http.request(method, path)
        body = check_problem(answer, 405, "method-not-allowed")
        assert (answer.headers["allow"], body["allowed"]) == (allowed, allowed.split(", "))


def test_there_is_nothing_at_an_unknown_path_by_any_method(http, check_problem):
    for method in ("GET", "OPTIONS", "POST"):
        check_problem(http.request(method, "/v1/nothing"), 404, "not-found")
    assert http.head("/v1/nothing").status_code == 404
