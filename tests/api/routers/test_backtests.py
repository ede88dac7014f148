"""Backtests over HTTP: what is refused, what is queued, how it stands. What runs them is tested elsewhere."""

import pytest

pytestmark = pytest.mark.redis

TEXT = "PATTERN p EVENT SEQ(A a, Z z)"


def ask(http, **changes):
    return http.post("/v1/backtests", json={"stream": "orders", "pattern": TEXT, "source": {"log": True}, **changes})


@pytest.fixture
def asked(orders):
    answer = ask(orders)
    assert answer.status_code == 202, answer.text
    return answer.json()


def test_a_backtest_waits_and_can_be_looked_at(orders, asked):
    assert (asked["state"], asked["progress"], asked["is_open"], asked["pruning"]) == ("queued", 0.0, True, "on")
    assert asked["source"] == {"path": None, "log": True}
    assert asked["patterns"] == [{"name": "p", "version": 1, "text": TEXT}]
    assert orders.get("/v1/backtests").json()["items"] == [asked]
    assert orders.get(f"/v1/backtests/{asked['id']}").json() == {**asked, "result": None}
    assert orders.get(f"/v1/backtests/{asked['id']}/alerts").json() == {"items": [], "next": None}


def test_deleting_cancels_and_then_removes(orders, asked, check_problem):
    place = f"/v1/backtests/{asked['id']}"
    assert orders.delete(place).status_code == 204
    found = orders.get(place).json()
    assert (found["state"], found["finished_at"]) == ("cancelled", asked["created_at"])
    assert orders.delete(place).status_code == 204
    for answer in (orders.get(place), orders.delete(place), orders.get(f"{place}/alerts")):
        check_problem(answer, 404, "unknown-backtest")


def test_a_backtest_that_is_done_shows_its_result_and_alerts_in_pages(orders, asked, stores):
    counts = dict.fromkeys(
        "alerts suppressed_alerts derived_events timeouts endings deviations corrections dead_letters released "
        "open_traces peak_held peak_state_bytes".split(),
        1,
    )
    variant = {"name": "pattern", **counts, "alerts_by_pattern": {"p": 1}, "dead_letters_by_code": {}, "busy_s": 0.5}
    ratios = {"peak_held_ratio": 0.5, "peak_state_bytes_ratio": None, "busy_ratio": 1.0}
    comparison = {"with": "against", "added": 1, "lost": 2, "same": 3, "unlisted": 0, **ratios}
    times = {"first_time": None, "last_time": None, "read_s": 1.0, "match_s": 2.0}
    summary = {
        "events": 9,
        "variants": [variant],
        "comparisons": [comparison],
        "alerts_kept": 3,
        "warnings": ["w"],
        **times,
    }
    time = "2026-01-01T00:00:00Z"
    alert = {"id": "x", "pattern": "p", "version": 1, "key": "k", "start": time, "end": time, "detected_at": time}
    alert |= {"change": "added", "compared_with": ["against"], "bindings": {"a": ["e1"]}, "returns": {}, "why": "so"}
    stores.backtests.keep_result(asked["id"], summary, [{**alert, "id": str(n), "type": "alert"} for n in range(3)])
    stores.backtests.advance(asked["id"], ("queued",), status="done", progress=1.0)
    place = f"/v1/backtests/{asked['id']}"
    assert orders.get(place).json()["result"] == summary
    first = orders.get(f"{place}/alerts", params={"limit": 2}).json()
    second = orders.get(f"{place}/alerts", params={"limit": 2, "after": first["next"]}).json()
    assert [one["id"] for one in first["items"] + second["items"]] == ["0", "1", "2"]
    assert second["next"] is None


def test_registered_patterns_are_named_by_version(orders, check_problem):
    for text in (TEXT, "PATTERN p EVENT SEQ(A a, B b, Z z)"):
        assert orders.put("/v1/patterns/p", json={"stream": "orders", "text": text}).is_success
    answer = ask(orders, pattern={"name": "p"}, against={"name": "p", "version": 1}).json()
    assert [(one["version"], one["text"]) for one in answer["against"]] == [(1, TEXT)]
    assert answer["patterns"][0]["version"] == 2
    problem = check_problem(ask(orders, pattern={"name": "p", "version": 7}), 404, "unknown-pattern")
    assert "has no version 7; it has 1 to 2" in problem["detail"]
    check_problem(ask(orders, pattern={"name": "q"}), 404, "unknown-pattern")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"stream": "none"}, 404, "unknown-stream"),
        ({"pattern": "PATTERN p EVENT"}, 400, "pattern-refused"),
        ({"pattern": "PATTERN p WHERE [other] EVENT A a"}, 400, "pattern-refused"),
        ({"pattern": "PATTERN p EVENT SEQ(A a, " + "X x, " * 200 + "Z z)"}, 413, "pattern-too-long"),
        ({"source": {"path": "a.jsonl"}}, 400, "backtest-refused"),
        ({"source": {"path": "../../etc/passwd"}}, 400, "backtest-refused"),
        ({"source": {}}, 422, "wrong-shape"),
        ({"source": {"log": True, "path": "a"}}, 422, "wrong-shape"),
        ({"source": {"log": False}}, 422, "wrong-shape"),
        ({"pruning": "maybe"}, 422, "wrong-shape"),
        ({"pruning": "compare"}, 400, "backtest-refused"),
        ({"pattern": {"version": 1}}, 422, "wrong-shape"),
    ],
)
def test_what_cannot_be_done_is_refused(orders, check_problem, changes, status, code):
    check_problem(ask(orders, **changes), status, code)
    assert orders.get("/v1/backtests").json() == {"items": [], "next": None}


def test_a_pattern_of_another_stream_is_refused(orders, check_problem):
    orders.post("/v1/streams", json={"name": "others"})
    orders.post("/v1/patterns", json={"stream": "others", "text": "PATTERN p EVENT A a"})
    check_problem(ask(orders, pattern={"name": "p"}), 409, "pattern-on-other-stream")


def test_an_invented_cursor_is_refused(orders, asked, check_problem):
    check_problem(orders.get(f"/v1/backtests/{asked['id']}/alerts", params={"after": "x"}), 400, "invalid-cursor")


def test_the_key_is_asked_for(stranger):
    assert stranger.get("/v1/backtests").status_code == 401
