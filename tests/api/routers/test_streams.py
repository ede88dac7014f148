from collections import Counter
from typing import Any

import numpy as np
import pytest

from service import AlertSink
from service.stores.log.pipeline_status import SHARDS_KEY
from shards import Observation
from streams import AutoLateness, Lags, format_time, lateness_summary
from streams.disorder import bins_of
from tests.builders.service import as_old_as_the_log, stats_row

pytestmark = pytest.mark.redis

ORDERS: dict[str, Any] = {
    "name": "orders",
    "key": "data.id",
    "keys": {"customer": "data.customer_id"},
    "event_types": ["A", "Z"],
    "end_events": ["Z"],
    "ties": "simultaneous",
    "lateness": None,
    "late": "dead_letter",
    "idle_timeout_s": None,
    "quiet_after_s": None,
    "max_ahead": {"mode": "default", "seconds": 21_600},
    "mapping": {
        "id": "nr",
        "type": "type",
        "time": "at",
        "data": None,
        "time_unit": "auto",
        "zone": None,
        "time_format": None,
        "local_times": "earlier",
        "delimiter": None,
        "encoding": None,
        "columns": {},
    },
    "duplicates": "keep",
    "derived": False,
    "schemas": "off",
    "description": "Orders of the shop.",
}
NO_BOUND = dict.fromkeys(("seconds", "at_least_s", "at_most_s", "start_s", "late_share"))
ALONE: dict[str, Any] = {"producers": [], "consumers": [], "held_back_by": None, "measured_lateness": None}


def test_a_stream_is_declared_and_shown(http):
    answer = http.post("/v1/streams", json=ORDERS)
    assert (answer.status_code, answer.json()) == (201, {**ORDERS, "warnings": []})
    assert http.get("/v1/streams/orders").json() == {**ORDERS, **ALONE}
    assert http.get("/v1/streams").json() == {"items": [ORDERS], "next": None}


def test_most_of_a_declaration_has_defaults(http):
    body = http.post("/v1/streams", json={"name": "s"}).json()
    assert (body["key"], body["event_types"], body["ties"], body["mapping"]["data"]) == ("subject", [], "log", "data")


def test_the_same_declaration_again_is_fine_and_another_is_not(http, check_problem):
    http.post("/v1/streams", json=ORDERS)
    assert http.post("/v1/streams", json=ORDERS).status_code == 200
    check_problem(http.post("/v1/streams", json={**ORDERS, "key": "data.other"}), 409, "stream-exists")


def test_an_unknown_stream_is_a_404(http, check_problem):
    body = check_problem(http.get("/v1/streams/orders"), 404, "unknown-stream")
    assert body["stream"] == "orders"


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"name": "two words"}, "name"), ({"key": ""}, "key"), ({"end_events": ["Q"]}, "end_events")],
)
def test_a_declaration_that_contradicts_itself_is_refused(http, check_problem, changes, field):
    body = check_problem(http.post("/v1/streams", json={**ORDERS, **changes}), 400, "stream-declaration")
    assert body["field"] == field


@pytest.mark.parametrize("body", [{}, {"name": 3}, {"name": "s", "colour": "red"}, {"name": "s", "ties": "no"}, []])
def test_a_body_of_another_shape_is_a_422(http, check_problem, body):
    assert check_problem(http.post("/v1/streams", json=body), 422, "wrong-shape")["errors"]


def test_a_further_key_that_means_two_things_is_refused(http, check_problem):
    body = {"name": "orders", "key": "data.id", "keys": {"id": "data.other"}}
    problem = check_problem(http.post("/v1/streams", json=body), 400, "stream-declaration")
    assert problem["field"] == "keys"


def test_keys_by_type_are_declared_shown_and_read(http):
    by_type = {
        "key": {"Pay": "data.ref", "Order": "data.id"},
        "keys": {"who": {"Order": "data.who.id", "*": "data.who"}},
    }
    answer = http.post("/v1/streams", json={"name": "shop", **by_type})
    assert answer.status_code == 201
    shown = http.get("/v1/streams/shop").json()
    assert {name: shown[name] for name in by_type} == by_type
    assert http.post("/v1/streams", json={"name": "shop", **by_type}).status_code == 200
    event = {"id": "e1", "type": "Pay", "time": 1, "data": {"ref": "o1"}}
    events = [event, {**event, "id": "e2", "type": "Refund"}, {**event, "id": "e3", "type": "Order"}]
    report = http.post("/v1/events", params={"stream": "shop"}, json=events).json()
    assert report["accepted"] == 1
    assert [one["index"] for one in report["rejected"]] == [1, 2]
    assert (
        "type 'Refund' has no correlation key here; the key is declared for the types Pay, Order"
        in (report["rejected"][0]["detail"])
    )
    assert "'data.id' is missing" in report["rejected"][1]["detail"]


@pytest.mark.parametrize(
    ("body", "status"),
    [({"key": {}}, 400), ({"key": {"A": 1}}, 422), ({"key": ["A"]}, 422), ({"keys": {"a": {}}}, 400)],
)
def test_keys_by_type_that_say_nothing_are_refused(http, check_problem, body, status):
    code = "stream-declaration" if status == 400 else "wrong-shape"
    check_problem(http.post("/v1/streams", json={"name": "shop", **body}), status, code)


# --- changes ------------------------------------------------------------------------------------------------------


def test_what_may_change_is_changed(orders):
    changes = {
        "lateness": {**NO_BOUND, "mode": "fixed", "seconds": 60},
        "late": "drop",
        "idle_timeout_s": 5,
        "quiet_after_s": 7,
        "max_ahead": {"mode": "unlimited", "seconds": None},
        "end_events": ["Q"],
    }
    answer = orders.patch("/v1/streams/orders", json={**changes, "description": "Orders."})
    assert answer.status_code == 200
    assert {name: answer.json()[name] for name in changes} == changes
    short = {"lateness": 60, "idle_timeout": 5, "quiet_after": 7, "max_ahead": "none"}
    assert orders.patch("/v1/streams/orders", json=short).json() == answer.json()
    assert {**orders.get("/v1/streams/orders").json(), "warnings": []} == {**answer.json(), **ALONE}
    assert orders.patch("/v1/streams/orders", json={"lateness": None, "late": "dead_letter"}).json()["lateness"] is None


@pytest.mark.parametrize("member", ["key", "keys", "ties", "duplicates", "mapping", "event_types", "name"])
def test_how_events_are_read_cannot_be_changed(orders, check_problem, member):
    body = check_problem(orders.patch("/v1/streams/orders", json={member: ORDERS[member]}), 422, "wrong-shape")
    assert f"{member} of a declared stream cannot be changed, only lateness, late, " in str(body["errors"])


def test_a_change_that_contradicts_itself_is_refused(orders, check_problem):
    check_problem(orders.patch("/v1/streams/orders", json={"late": "drop"}), 400, "stream-declaration")
    check_problem(orders.patch("/v1/streams/nobody", json={"lateness": 1}), 404, "unknown-stream")


def test_a_change_of_what_another_one_has_changed_is_refused(orders, check_problem):
    tag = orders.get("/v1/streams/orders").headers["ETag"]
    changed = orders.patch("/v1/streams/orders", json={"lateness": 1}, headers={"If-Match": tag})
    assert changed.headers["ETag"] != tag
    stale = orders.patch("/v1/streams/orders", json={"lateness": 2}, headers={"If-Match": tag})
    check_problem(stale, 412, "precondition-failed")
    check_problem(orders.delete("/v1/streams/orders", headers={"If-Match": tag}), 412, "precondition-failed")


# --- a lateness that is measured -------------------------------------------------------------------------------------

LIMITS = {"at_least": 0, "at_most": 90, "start": 5, "late_share": 0}
MEASURED = {"mode": "auto", "seconds": None, "at_least_s": 0, "at_most_s": 3_600, "start_s": 60, "late_share": 0}


def test_a_lateness_that_is_measured_is_declared_and_shown_as_it_was_said(http):
    assert http.post("/v1/streams", json={**ORDERS, "lateness": "auto"}).json()["lateness"] == MEASURED
    shown = http.get("/v1/streams/orders").json()
    assert shown["lateness"] == MEASURED
    assert shown["measured_lateness"] == {
        "bound_s": 60,
        "since": None,
        "seen": None,
        "total_changes": 0,
        "changes": [],
    }
    changed = http.patch("/v1/streams/orders", json={"lateness": {"auto": {"at_most": 90, "start": 5}}}).json()
    assert changed["lateness"] == {**MEASURED, "at_most_s": 90, "start_s": 5}
    assert http.patch("/v1/streams/orders", json={"lateness": changed["lateness"]}).json() == changed
    assert http.post("/v1/streams", json={**ORDERS, "lateness": {"auto": LIMITS}}).status_code == 200
    assert http.patch("/v1/streams/orders", json={"lateness": 7}).json()["lateness"]["seconds"] == 7
    assert http.get("/v1/streams/orders").json()["measured_lateness"] is None


def test_what_was_measured_is_shown(orders, stores, clock):
    orders.patch("/v1/streams/orders", json={"lateness": {"auto": {"start": 5}}})
    as_old_as_the_log(stores.client, "orders")
    lags = Lags(events=300, largest_us=20_000_000, bins=Counter({int(bins_of(np.array([20_000_000]))[0]): 1}))
    summary = lateness_summary(AutoLateness(start=5), 5_000_000, 0, lags)
    observed = [Observation(stream="orders", decider="lateness", summary=summary).to_json()]
    row = stats_row(0, "1-0", after="0-0", observed=observed, streams={"orders": {"lateness_us": 25_000_000}})
    AlertSink(stores, clock)([row], 1)
    seen = {"events": 300, "largest_s": 20, "beyond": 0}
    at = format_time(clock.now_us())
    assert orders.get("/v1/streams/orders").json()["measured_lateness"] == {
        "bound_s": 25,
        "since": at,
        "seen": seen,
        "total_changes": 1,
        "changes": [{"at": at, "bound_s": 25, "seen": seen}],
    }
    scraped = orders.get("/metrics").text
    assert 'forestall_lateness_seconds{stream="orders"} 25.0' in scraped
    assert 'forestall_lateness_changes_total{stream="orders"} 1.0' in scraped
    assert stores.pipeline_status.shards()[0].streams["orders"].lateness_us == 25_000_000
    assert b"observed" not in stores.client.hget(SHARDS_KEY, "0")


@pytest.mark.parametrize(
    ("lateness", "status"),
    [("aut", 422), ({"auto": 5}, 422), ({"auto": {"most": 5}}, 422), ({"auto": {"at_most": -1}}, 422)],
)
def test_a_lateness_of_another_shape_is_refused(orders, check_problem, lateness, status):
    body = check_problem(orders.patch("/v1/streams/orders", json={"lateness": lateness}), status, "wrong-shape")
    assert "lateness" in str(body["errors"])


def test_limits_that_contradict_each_other_are_refused(orders, check_problem):
    body = {"lateness": {"auto": {"at_least": 9, "at_most": 5}}}
    problem = check_problem(orders.patch("/v1/streams/orders", json=body), 400, "stream-declaration")
    assert (problem["field"], "more than at_most" in problem["detail"]) == ("lateness", True)


# --- the end of a stream ------------------------------------------------------------------------------------------

PATTERN = {"stream": "orders", "text": "PATTERN p EVENT A a"}


def test_a_stream_is_deleted_and_takes_no_events(orders, check_problem):
    assert orders.delete("/v1/streams/orders").json() == {"stream": "orders", "dry_run": False, "items": []}
    check_problem(orders.delete("/v1/streams/orders"), 404, "unknown-stream")
    event = {"id": "e1", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"id": "k"}}
    check_problem(orders.post("/v1/events?stream=orders", json=event), 404, "unknown-stream")
    assert orders.post("/v1/streams", json={"name": "orders", "key": "data.other"}).status_code == 201


def test_what_is_in_the_way_is_named_and_goes_with_a_cascade(orders, check_problem):
    assert orders.post("/v1/patterns", json=PATTERN).status_code == 201
    refused = check_problem(orders.delete("/v1/streams/orders"), 409, "stream-in-use")
    assert refused["uses"] == [{"kind": "pattern", "name": "p", "state": "active"}]
    listed = orders.delete("/v1/streams/orders?cascade=true&dry_run=true").json()
    assert (listed["dry_run"], listed["items"]) == (True, refused["uses"])
    assert orders.get("/v1/patterns/p").status_code == 200
    gone = orders.delete("/v1/streams/orders?cascade=true").json()
    assert (gone["dry_run"], gone["items"]) == (False, refused["uses"])
    assert orders.get("/v1/patterns").json() == {"items": [], "next": None}


def test_a_cascade_needs_an_admin(orders, holder, check_problem):
    writer = holder("read", "patterns")
    writer.post("/v1/patterns", json=PATTERN)
    check_problem(writer.delete("/v1/streams/orders?cascade=true"), 403, "forbidden")
    assert writer.delete("/v1/streams/orders?cascade=true&dry_run=true").status_code == 200
    check_problem(writer.delete("/v1/streams/orders"), 409, "stream-in-use")
    writer.post("/v1/patterns/p/retire")
    assert writer.delete("/v1/streams/orders").status_code == 200
