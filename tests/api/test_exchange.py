"""What every exchange has: an id in request, answer and problem; validators; who may keep an answer; its time."""

import logging
import re

import httpx
import pytest
import structlog

from api import create_app
from api.validators import declared_tag
from tests.builders.api import serving
from tests.builders.waiting import PATIENCE_S

pytestmark = pytest.mark.redis


def test_an_id_of_the_client_is_repeated_and_another_is_made(orders, check_problem):
    answer = orders.get("/v1/streams/none", headers={"X-Request-Id": "job-7.1"})
    assert answer.headers["x-request-id"] == "job-7.1"
    assert check_problem(answer, 404, "unknown-stream")["instance"] == "urn:forestall:request:job-7.1"
    for odd in ("a b", "x" * 101, "ü".encode()):
        made = orders.get("/v1/streams", headers={"X-Request-Id": odd}).headers["x-request-id"]
        assert re.fullmatch("[0-9a-f]{32}", made)


def test_a_refused_request_is_in_the_log_with_its_id(orders, caplog):
    ids: list[object] = []

    def note(_: logging.LogRecord) -> bool:
        ids.append(structlog.contextvars.get_contextvars().get("request_id"))
        return True

    caplog.handler.addFilter(note)
    with caplog.at_level(logging.INFO, "api.exchange"):
        orders.get("/v1/streams/orders", headers={"X-Request-Id": "job-7"})
        orders.get("/v1/streams/none", headers={"X-Request-Id": "job-8"})
    (line,) = [line for line in caplog.records if line.name == "api.exchange"]
    assert (line.getMessage(), line.path, line.status, ids[-1]) == ("request", "/v1/streams/none", 404, "job-8")


def test_a_tag_covers_the_whole_body_and_gives_304(orders):
    before = orders.get("/v1/streams/orders")
    again = orders.get("/v1/streams/orders", headers={"If-None-Match": before.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", before.headers["etag"])
    assert "content-type" not in again.headers
    orders.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)"})
    after = orders.get("/v1/streams/orders", headers={"If-None-Match": before.headers["etag"]})
    assert (after.status_code, after.json()["consumers"]) == (200, ["p"])
    assert after.headers["etag"] != before.headers["etag"]
    assert declared_tag(after.headers["etag"].strip('"')) == declared_tag(before.headers["etag"].strip('"'))
    changed = orders.patch(
        "/v1/streams/orders", json={"description": "x"}, headers={"If-Match": before.headers["etag"]}
    )
    assert changed.status_code == 200


def test_lists_and_the_description_have_tags_too(orders):
    for path in ("/v1/streams", "/v1/alerts", "/openapi.json"):
        tag = orders.get(path).headers["etag"]
        assert orders.get(path, headers={"If-None-Match": f'"x", {tag}'}).status_code == 304


def test_answers_are_not_kept_where_they_may_have_secrets(http):
    created = http.post("/v1/keys", json={"name": "x", "scopes": ["read"]})
    assert created.headers["cache-control"] == "no-store"
    assert http.get("/v1/keys").headers["cache-control"] == "private, no-cache"
    assert "content-type" not in http.delete(f"/v1/keys/{created.json()['id']}").headers


def test_large_answers_are_compressed_and_streams_of_events_are_not(orders):
    assert orders.get("/openapi.json").headers["content-encoding"] == "gzip"
    assert "content-encoding" not in orders.get("/openapi.json", headers={"Accept-Encoding": "identity"}).headers
    with orders.stream("GET", "/v1/alerts/live") as live:
        assert "content-encoding" not in live.headers


def test_requests_are_measured_by_route_and_status(orders):
    orders.get("/v1/streams/none")
    metrics = orders.get("/metrics").text
    labels = 'method="GET",route="/v1/streams/{stream}",status="404"'
    assert re.search(rf"forestall_http_request_seconds_count{{{re.escape(labels)}}} [1-9]", metrics)
    assert re.search(rf'forestall_http_request_seconds_bucket{{le="\+Inf",{re.escape(labels)}}}', metrics)
    assert 'forestall_build_info{version="' in metrics


def test_a_client_that_leaves_an_endless_answer_is_no_error(orders):
    with structlog.testing.capture_logs() as logs:
        for _ in range(5):
            with orders.stream("GET", "/v1/alerts/live?after=0") as live:
                next(live.iter_raw())
        orders.get("/v1/health")
    assert [line for line in logs if line["log_level"] == "error"] == []


def test_the_start_page_is_for_people_and_an_index_for_programs(stranger):
    index = stranger.get("/")
    assert (index.status_code, index.json()["name"]) == (200, "Forestall")
    assert index.json() == stranger.get("/v1").json()
    for path in index.json()["links"].values():
        assert stranger.get(path).status_code in (200, 503)
    page = stranger.get("/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "Not ready: waiting for the pipeline" in page.text
    *links, console = re.findall('<a href="([^"]+)"', page.text)
    assert {stranger.get(f"/{address}").status_code for address in links} <= {200, 503}
    assert console == "http://127.0.0.1:8010/"
    assert stranger.get("/favicon.ico").headers["content-type"] == "image/png"


def test_the_start_page_says_how_many_streams_it_leaves_out(orders, settings, monkeypatch):
    monkeypatch.setattr("api.start_page._MOST_STREAMS", 2)
    orders.post("/v1/streams", json={"name": "s1"})
    cut = '<p>The first 2 of 3 streams. <a href="v1/streams">All streams</a></p>'
    with (
        serving(create_app(settings.model_copy(update={"api_key": None, "auth": "none"}))) as url,
        httpx.Client(base_url=url, headers={"Accept": "text/html"}, timeout=PATIENCE_S) as browser,
    ):
        assert "The first" not in browser.get("/").text
        orders.post("/v1/streams", json={"name": "s2"})
        page = browser.get("/").text
    assert cut in page
    assert "s2" not in page


def test_the_start_page_links_to_the_console_of_its_host(stranger):
    page = stranger.get("/", headers={"Accept": "text/html", "Host": "[::1]:8000"})
    assert '<a href="http://[::1]:8010/">Console</a>' in page.text


def test_the_start_page_depends_on_what_the_client_accepts_and_works_under_a_prefix(stranger):
    index = stranger.get("/v1")
    page = stranger.get("/v1", headers={"Accept": "text/html"})
    assert [answer.headers["vary"] for answer in (index, page)] == ["Accept", "Accept"]
    assert 'href="docs"' in page.text
    assert "../" not in page.text


def test_methods_of_other_protocols_are_measured_as_one(http):
    for method in ("PROPFIND", "MKCOL", "SUBSCRIBE"):
        assert http.request(method, "/v1/streams").status_code == 405
    assert http.request("INVENTED", "/v1/streams").status_code == 400
    text = http.get("/metrics").text
    assert 'method="other"' in text
    assert not any(method in text for method in ("PROPFIND", "MKCOL", "SUBSCRIBE", "INVENTED"))
