"""What the clients carry out, without a network: calls, retries, pages and server-sent events as values."""

import logging
from datetime import UTC, datetime
from types import SimpleNamespace

import httpx
import pytest
from httpx_sse import ServerSentEvent
from hypothesis import given
from hypothesis import strategies as st

from service.client import (
    ApiError,
    Call,
    InvalidRequest,
    LiveEvent,
    ServiceFault,
    ServiceUnreachable,
    UnexpectedAnswer,
    condition,
)
from service.client.calls import Following, Paging, Patience, Retries, decoded


def answer(status, body=b"", **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, content=body, headers=fields, request=httpx.Request("GET", "http://h/v1/streams"))


def test_a_call_in_the_form_of_httpx():
    call = Call(method="POST", path="/streams", query={"a": None, "b": ["x", "y"], "c": True}, body={"n": 1})
    assert call.options({"Authorization": "Bearer k"}) == {
        "method": "POST",
        "url": "/v1/streams",
        "params": {"b": ["x", "y"], "c": True},
        "headers": {"Authorization": "Bearer k", "Content-Type": "application/json"},
        "content": b'{"n":1}',
    }


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/streams", "/v1/streams"),
        ("/v1/streams?limit=3", "/v1/streams?limit=3"),
        ("/metrics", "/metrics"),
        ("/openapi.json", "/openapi.json"),
        ("/", "/"),
        ("/v1x", "/v1/v1x"),
    ],
)
def test_paths_are_below_the_version_unless_they_are_rooted(path, url):
    assert Call(method="GET", path=path).options({}) == {"method": "GET", "url": url, "headers": {}}


def test_a_time_in_the_query_needs_its_zone():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    query = Call(method="GET", path="/alerts", query={"since": at}).options({})["params"]
    assert query == {"since": "2026-01-01T00:00:00+00:00"}
    with pytest.raises(ValueError, match="no time zone"):
        Call(method="GET", path="/alerts", query={"since": at.replace(tzinfo=None)}).options({})


def test_what_may_create_has_a_key_of_its_own_unless_one_is_given():
    keys = {Call(method="POST", path="/streams").with_key().headers["Idempotency-Key"] for _ in range(9)}
    assert len(keys) == 9
    given_key = Call(method="PUT", path="/x", headers={"Idempotency-Key": "mine"})
    assert given_key.with_key() == given_key
    for method in ("GET", "PATCH", "DELETE"):
        assert not Call(method=method, path="/x").with_key().headers


def test_conditions():
    assert condition(None) == {"If-None-Match": "*"}
    assert condition("") == {}
    assert condition('"a"') == {"If-Match": '"a"'}


@pytest.mark.parametrize(
    ("body", "form", "content"),
    [
        (b'{"a": 1}', "application/json", {"a": 1}),
        (b'{"a": 1}', "application/schema+json; charset=utf-8", {"a": 1}),
        (b"<svg/>", "image/svg+xml", "<svg/>"),
        (b"a: 1", "application/yaml", "a: 1"),
        (b"# HELP", "text/plain; version=1.0.0; charset=utf-8", "# HELP"),
        (b"PAR1", "application/vnd.apache.parquet", b"PAR1"),
        (b"", "application/json", None),
    ],
)
def test_contents(body, form, content):
    assert decoded(answer(200, body, content_type=form)) == content


@pytest.fixture
def clock(monkeypatch):
    """The clock of the module, which a test moves."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("service.client.calls.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def outlasted(clock, retries, attempt):
    """The pauses until a call is given up, and the error."""
    pauses = []
    while True:
        try:
            pauses.append(attempt(retries))
        except (ApiError, ServiceUnreachable) as error:
            return pauses, error
        clock.now += pauses[-1]


def test_pauses_grow_and_end_within_the_patience(clock):
    retries = Retries(Patience(unanswered_s=20.0, overload_s=0.0), "http://h")
    pauses, error = outlasted(clock, retries, lambda one: one.after_failure(httpx.ConnectError("refused")))
    assert 10 < len(pauses) < 40
    assert max(pauses[:2]) < 0.3
    assert 0.9 < min(pauses[6:]) < max(pauses) <= 2.0
    assert clock.now <= 20.0
    assert str(error) == "http://h does not answer: refused"
    assert error.details["is_listening"] is False


def test_a_service_without_patience_is_asked_once(clock):
    for attempt in (
        lambda one: one.after_failure(httpx.ReadTimeout("")),
        lambda one: one.after_answer(answer(503)),
        lambda one: one.after_answer(answer(429)),
    ):
        pauses, error = outlasted(clock, Retries(Patience(unanswered_s=0.0, overload_s=0.0), "http://h"), attempt)
        assert (pauses, error.is_retryable) == ([], True)


def test_overload_is_waited_for_as_the_service_says(clock):
    retries = Retries(Patience(unanswered_s=0.0, overload_s=60.0), "http://h")
    pauses, error = outlasted(clock, retries, lambda one: one.after_answer(answer(429, b"later", retry_after="7")))
    assert pauses == [7.0] * 8
    assert (error.status, error.retry_after_s) == (429, 7)


@pytest.mark.parametrize(("text", "seconds"), [("0", 1), ("999", 60), ("Wed, 21 Oct 2026 07:28:00 GMT", 1), ("-3", 1)])
def test_pauses_of_the_service_are_bounded(clock, text, seconds):
    assert Retries(Patience(unanswered_s=0, overload_s=99), "").after_answer(answer(429, retry_after=text)) == seconds


def test_what_no_attempt_can_change_is_not_repeated(clock):
    retries = Retries(Patience(unanswered_s=99.0, overload_s=99.0), "http://h")
    assert retries.after_answer(answer(204)) is None
    for status, kind in ((400, InvalidRequest), (418, InvalidRequest), (500, ServiceFault), (502, ServiceFault)):
        with pytest.raises(kind, match=rf"GET /v1/streams was refused \({status}\): <html>"):
            retries.after_answer(answer(status, b"<html>"))
    with pytest.raises(
        UnexpectedAnswer, match="http://h is not the address of the service: it redirects to https://h/"
    ):
        retries.after_answer(answer(301, location="https://h/"))


@given(
    st.lists(st.lists(st.integers(), max_size=4), min_size=1, max_size=5), st.none() | st.integers(0, 12), st.booleans()
)
def test_pages_are_the_list_up_to_a_number(pages, most, is_trimmed):
    gaps: list[str] = []
    more: list[str] = []
    asked: list[int] = []
    items: list[int] = []
    paging = Paging("/alerts", {"stream": "s"}, most, gaps.append, more.append)
    while (call := paging.call()) is not None:
        number = int(call.query.get("after", 0))
        asked.append(call.query["limit"])
        page = {"items": pages[number], "next": str(number + 1) if number + 1 < len(pages) else None}
        items += paging.items({**page, "trimmed_until": "T"} if is_trimmed and number == 0 else page)
    whole = [item for page in pages for item in page]
    assert items == whole[:most]
    assert gaps == (["T"] if is_trimmed and most != 0 else [])
    assert len(asked) <= len(pages)
    if most is not None:
        assert all(limit <= max(most, 1) for limit in asked)
        assert bool(more) == (0 < len(items) == most and len(asked) < len(pages))


def test_live_events_move_the_cursor_and_the_pause(caplog):
    following = Following("/alerts/live", {"stream": "s"}, None, None)
    assert "Last-Event-ID" not in following.call().headers
    assert following.take(ServerSentEvent(id="5", retry=3_000)) is None
    assert following.call().headers["Last-Event-ID"] == "5"
    assert following.pause_s == 3.0
    taken = following.take(ServerSentEvent(id="6", event="alert", data='{"id": "a1"}'))
    assert taken == LiveEvent("6", "alert", {"id": "a1"})
    with caplog.at_level(logging.WARNING):
        assert following.take(ServerSentEvent(id="9", event="gap", data='{"trimmed_until": "T"}')) is None
    assert caplog.messages == ["events before T are no longer kept, and were skipped"]
    assert following.call().headers["Last-Event-ID"] == "9"


def test_a_gap_is_reported_to_the_caller():
    gaps: list[str] = []
    following = Following("/x", {}, "1", gaps.append)
    following.take(ServerSentEvent(id="2", event="gap", data='{"trimmed_until": "T"}'))
    assert gaps == ["T"]
