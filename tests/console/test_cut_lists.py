"""Lists that are too long for a page: they have further pages, or the page says how many items it leaves out."""

import re
from typing import Any, cast

import pytest

from console.calls import Api
from console.charts import histogram
from console.page import templates
from console.sessions import Session
from service.stores import Delivery, DeliveryOutcome
from tests.builders.console import add_alerts

pytestmark = pytest.mark.redis


def boxes(text):
    return re.findall(r'<a href="/streams\?stream=([^"#]+)#chosen" class="stream">', text)


def test_streams_have_pages(reader, http):
    names = [f"s{number:02}" for number in range(65)]
    for name in names:
        assert http.post("/streams", json={"name": name}).status_code == 201
    reader.submit("/webhooks/none", action="enable")  # pages no longer show what earlier tests have read
    first = reader.text("/streams")
    assert "60 of 65 streams" in first
    (path,) = re.findall(r'href="([^"]+)" rel="next"', first)
    second = reader.text(path.replace("&amp;", "&"))
    assert "5 of 65 streams" in second
    assert boxes(first) + boxes(second) == names
    chosen = reader.text("/streams?stream=s63")
    assert boxes(chosen) == names[60:]
    assert "<h2>s63 " in chosen


def test_receivers_that_the_overview_does_not_check_are_said(reader, orders, monkeypatch):
    monkeypatch.setattr("console.views.overview._MOST_WEBHOOKS", 2)
    for port in (7, 8):
        assert orders.post("/webhooks", json={"url": f"http://127.0.0.1:{port}/"}).status_code == 201
    cut = "Only the first 2 webhooks and the first 2 other receivers are checked here."
    reader.submit("/webhooks/none", action="enable")
    assert cut not in reader.text("/")
    assert orders.post("/webhooks", json={"url": "http://127.0.0.1:9/"}).status_code == 201
    reader.submit("/webhooks/none", action="enable")
    assert cut in reader.text("/")


def test_receivers_that_are_not_asked_for_deliveries_are_said(reader, orders, stores, monkeypatch):
    monkeypatch.setattr("console.views.alerts._MOST_RECEIVERS", 1)
    add_alerts(stores, {})
    for port in (8, 9):
        assert orders.post("/webhooks", json={"url": f"http://127.0.0.1:{port}/"}).status_code == 201
    reader.submit("/webhooks/none", action="enable")
    assert "Only the first webhooks and other receivers, 1 of each, were asked." in reader.text(f"/alerts/{0:032x}")


def test_receivers_with_more_attempts_than_are_listed_are_said(reader, orders, stores, monkeypatch):
    monkeypatch.setattr("console.views.alerts._MOST_ATTEMPTS", 2)
    add_alerts(stores, {})
    alert, webhook = f"{0:032x}", orders.post("/webhooks", json={"url": "http://127.0.0.1:9/", "name": "desk"}).json()
    delivery = Delivery(
        id=f"{webhook['id']}:{alert}", webhook=webhook["id"], alert=alert, attempts=0, queued_us=1, lease_us=9
    )
    cut = 'Only the newest attempts are listed; there may be more for <a href="/webhooks/'
    for attempt in range(3):
        stores.deliveries.send_again(webhook["id"], [delivery], 1)
        (claimed,) = stores.deliveries.claim(1, 8, 1)
        assert stores.deliveries.settle(claimed, DeliveryOutcome(verdict="dead", at_us=attempt, error="refused"))
        reader.submit("/webhooks/none", action="enable")
        text = reader.text(f"/alerts/{alert}")
        assert text.count("abandoned refused") == min(2, attempt + 1)
        assert (cut in text) == (attempt == 2)


def test_messages_that_a_page_does_not_show_are_counted():
    session = Session(cast("Any", None), "n", (), None, 0.0)
    for number in range(8):
        session.notify(str(number))
    assert [notice.text for notice in session.take_notices()] == ["3 earlier messages not shown.", *"34567"]
    assert session.take_notices() == []


def test_a_pattern_says_how_many_versions_it_has(reader, orders, monkeypatch):
    monkeypatch.setattr("console.views.patterns._MOST_VERSIONS", 2)
    for hours in (1, 2):
        changed = {"stream": "orders", "text": f"PATTERN p EVENT SEQ(A a, B b) WITHIN {hours} h"}
        assert orders.put("/patterns/p", json=changed).json()["version"] == hours + 1
    text = reader.text("/patterns/p")
    assert "the newest 2 of 3; <code>forestall patterns versions p</code> lists all" in text
    assert "<summary>Version 1 " not in text


def test_a_transaction_links_to_the_rest_of_its_alerts(reader, orders, stores):
    posted = [{"id": "e1", "type": "A", "time": 1_000, "subject": "k"}]
    assert orders.post("/events?stream=orders", json=posted).json()["rejected"] == []
    add_alerts(stores, *({"key": "k"} for _ in range(19)))
    link = 'href="/alerts?stream=orders&amp;key=k"'
    assert link not in reader.text("/transactions/orders/k")
    add_alerts(stores, *({"key": "k"} for _ in range(21)))
    assert link in reader.text("/transactions/orders/k")


def test_a_pattern_says_how_many_lines_are_compared(reader, orders, monkeypatch):
    monkeypatch.setattr("console.views.patterns._MOST_DRAWN", 2)
    cut = "The differences are of the first 2 of 3 lines."
    for text in ("PATTERN p\nEVENT SEQ(A a, B b)", "PATTERN p\nEVENT SEQ(A a, B b)\nWITHIN 1 h"):
        assert cut not in reader.text("/patterns/p")
        assert orders.put("/patterns/p", json={"stream": "orders", "text": text}).status_code == 200
    text = reader.text("/patterns/p")
    assert text.count("The differences are of the first") == text.count(cut) == 1


def test_a_transaction_says_which_matches_are_marked_and_how_many_types_are_left_out(reader, http, monkeypatch):
    declared = {"name": "orders", "event_types": ["A", "B", *(f"T{number:02}" for number in range(51))]}
    assert http.post("/streams", json=declared).status_code == 201
    assert http.post("/patterns", json={"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)"}).status_code == 201
    post(http, "A", *("B" * 20))
    text = reader.text("/transactions/orders/k")
    assert "It matched 20 times.</dd>" in text
    assert "3 further types were not examined." in text
    post(http, "B", first=21)
    cut = "It matched 21 times. The events of the newest 20 matches are marked below."
    assert cut in reader.text("/transactions/orders/k")


def test_a_transaction_says_how_many_values_of_a_further_key_are_left_out(reader, http):
    declared = {"name": "shop", "keys": {"customer": "data.customer"}}
    assert http.post("/streams", json=declared).status_code == 201
    habit = {"stream": "shop", "text": "PATTERN habit EVENT SEQ(A a, B b) WHERE [customer]"}
    assert http.post("/patterns", json=habit).status_code == 201
    post(http, *("A" * 22), stream="shop")
    assert "c19, and 2 more)" in reader.text("/transactions/shop/k")


def test_an_alert_says_how_many_events_of_the_transaction_are_left_out(reader, orders, stores):
    post(orders, *("A" * 200))
    add_alerts(stores, {"key": "k", "bindings": {"a": ["e199"]}})
    assert "the newest 200 of" not in reader.text(f"/alerts/{0:032x}")
    post(orders, "A", first=200)
    assert "the newest 200 of 201 of the <a href=" in reader.text(f"/alerts/{0:032x}")


def test_the_editor_says_from_how_many_events_its_words_are(reader, orders):
    post(orders, *"AB")
    reader.submit("/webhooks/none", action="enable")
    assert "the newest 2 events" in reader.text("/editor?pattern=p")


def test_a_dry_run_says_what_its_chart_leaves_out(reader, orders, monkeypatch):
    post(orders, "A", *("B" * 101))
    form = {"stream": "orders", "text": "PATTERN q EVENT SEQ(A a, B b)", "events": "1000"}
    assert "The first 100 of 101 matches. The chart shows these, too." in reader.submit("/trials/dry-run", **form).text

    async def dropping(*_):
        members = ("matches", "warnings", "ending_reasons", "failing_conditions")
        return {**dict.fromkeys(members, ()), "events": 9, "first_time": None, "matched": 2, "endings": 0} | {
            "duration_s": 0.1,
            "dropped": 1_234,
        }

    monkeypatch.setattr("console.views.trials._dry_run", dropping)
    assert "1,234 further matches are beyond a limit, and not counted." in reader.submit("/trials/dry-run", **form).text


def test_a_backtest_says_what_its_list_and_its_chart_leave_out(reader, orders, stores, monkeypatch):
    monkeypatch.setattr("console.views.trials._SHOWN", 1)
    monkeypatch.setattr("console.views.trials._KEPT_ALERTS", 2)
    asked = {"stream": "orders", "pattern": "PATTERN q EVENT SEQ(A a, B b)", "source": {"log": True}}
    backtest = orders.post("/backtests", json=asked).json()["id"]
    times = {"first_time": None, "last_time": None, "read_s": 1.0, "match_s": 2.0}
    alert = {"type": "alert", "pattern": "q", "version": 1, "key": "k", "bindings": {}, "returns": {}, "why": "so"}
    alert |= dict.fromkeys(("start", "end", "detected_at"), "2026-01-01T00:00:00Z") | {"compared_with": []}
    summary: dict[str, Any] = {"events": 9, "variants": [], "comparisons": [], "alerts_kept": 3, **times}
    kept = [{**alert, "id": str(number), "change": None} for number in range(3)]
    stores.backtests.keep_result(backtest, summary, kept)
    stores.backtests.advance(backtest, ("queued",), status="done", progress=1.0)
    text = reader.text(f"/backtests/{backtest}")
    assert "The first 1 of 3 kept alerts. <code>forestall backtests alerts" in text
    assert "The first 2 of 3 kept alerts. The chart shows no others." in text


def test_a_chart_without_results_in_its_hours_does_not_say_that_there_were_none(reader, orders, stores, monkeypatch):
    hour = {"hour": "2025-01-01T00:00:00Z", "stream": "orders", "pattern": "p", "count": 3}
    real = Api.get

    async def get(api, path, **parameters):
        if path == "/results/hours" and parameters.get("kind") == "ending":
            return {"since": hour["hour"], "items": [hour]}
        return await real(api, path, **parameters)

    monkeypatch.setattr(Api, "get", get)
    add_alerts(stores, {"detected_at": "2025-12-31T20:00:00Z"})
    reader.submit("/webhooks/none", action="enable")
    assert "None in these 48 hours, which end with the newest result of any pattern." in reader.text("/")


def test_an_engine_without_events_has_no_unit_of_its_cost(reader, orders, monkeypatch):
    engine = {"kind": "pattern", "operators": [{"name": "p", "results_per_s": 0.0}], "stream": "orders", "cores": 0.0}
    answered(monkeypatch, {"/pipeline/plan": {"engines": [{**engine, "cost_us": None, "events_per_s": 0.0}]}})
    reader.submit("/webhooks/none", action="enable")
    text = reader.text("/streams")
    assert "What costs most" in text
    assert '<td class="n">–</td>' in text


def test_open_transactions_say_what_is_left_out(reader, orders, monkeypatch):
    bound = {"bound": [{"alias": "a"}], "bound_events": 51, "waits_for": ["B b"], "more_waits_for": 2}
    time = "2026-01-01T00:00:00Z"
    case: dict[str, Any] = {
        "key": "k",
        "since": time,
        "newest": time,
        "last_type": "A",
        "events": 60,
        "constraints_state": "kept",
    }
    case |= {"patterns": [{"name": "p", "state": "alive", "furthest": bound}], "more_patterns": 7}
    case |= {"may_follow": {"possible_types": ["B"], "excluded_types": [], "more_types": 9}}
    listed = {"time": time, "open_count": 5, "matching_count": 5, "counts_by_last_type": {"A": 2}, "items": [case]}
    answered(monkeypatch, {"/traces": listed})
    post(orders, "A", "B")
    reader.submit("/webhooks/none", action="enable")
    text = re.sub(r"<[^>]+>", "", reader.text("/transactions?stream=orders"))
    assert "without an event among the oldest 1 / the usual time to the next in the newest 2 events" in text
    assert "3 further open transactions are at less frequent event types." in text
    assert "has 51 events, the newest 1 of them a; waits for B b or 2 further steps" in text
    assert "7 further patterns are not listed." in text
    assert "B 9 further types were not examined." in text
    case["may_follow"] = {"possible_types": [], "excluded_types": []}
    assert "nothing is excluded" in reader.text("/transactions?stream=orders")
    case["may_follow"] = {"possible_types": [], "excluded_types": ["C"]}
    assert "nothing is excluded" not in reader.text("/transactions?stream=orders")
    case["patterns"].append({"name": "q", "state": "waiting", "furthest": None})  # those that are left out wait, too
    assert "further patterns are" not in reader.text("/transactions?stream=orders")


def test_a_transaction_that_is_over_names_patterns_that_were_registered_later(reader, orders):
    post(orders, "A", "B", "Z")
    assert orders.post("/patterns", json={"stream": "orders", "text": "PATTERN q EVENT SEQ(A a, B b)"}).is_success
    reader.submit("/webhooks/none", action="enable")
    text = reader.text("/transactions/orders/k")
    assert "Version 1 was registered after this transaction's last event." in text.replace("&#39;", "'")
    assert text.count("It matched once.") == 1  # the pattern that was registered before


def test_a_transaction_says_how_much_of_it_patterns_saw(reader, orders):
    for name, text in {"one": "SEQ(A a, B b [v > 2])", "two": "SEQ(A a, B b)"}.items():
        assert orders.post("/patterns", json={"stream": "orders", "text": f"PATTERN {name} EVENT {text}"}).is_success
    post(orders, "A")
    change = {"text": "PATTERN one EVENT SEQ(A a, B b)", "start": "migrate", "stream": "orders"}
    assert orders.put("/patterns/one", json=change).is_success
    assert orders.post("/patterns/two/pause").is_success
    post(orders, "B", "Z", first=1)
    reader.submit("/webhooks/none", action="enable")
    text = reader.text("/transactions/orders/k")
    assert "It saw 2 of the 3 events. Earlier versions matched nothing." in text
    assert orders.post("/patterns/two/resume").is_success
    assert "all events that it needs. It saw 1 of the 3 events." in reader.text("/transactions/orders/k")


def test_a_transaction_without_rules_says_that_any_type_may_come_next(reader, orders):
    post(orders, "A")
    reader.submit("/webhooks/none", action="enable")
    assert "<b>Z</b>" in reader.text("/transactions/orders/k")
    assert "Any other type, too: no rule applies." in reader.text("/transactions/orders/k")
    rules = {"stream": "orders", "constraints": ["exclusive(A, C)"]}
    assert orders.post("/constraints", json=rules).is_success
    post(orders, "Z", "A", first=1)
    reader.submit("/webhooks/none", action="enable")
    assert "Any other type" not in reader.text("/transactions/orders/k")


def test_a_transaction_says_what_was_not_examined_and_how_many_steps_are_left_out(reader, orders, monkeypatch):
    for name, text in {"one": "SEQ(A a, NOT H h, B b)", "two": "SEQ(A a, B b)", "three": "SEQ(D d, B b)"}.items():
        assert orders.post("/patterns", json={"stream": "orders", "text": f"PATTERN {name} EVENT {text}"}).is_success
    post(orders, "A", "H")
    reader.submit("/webhooks/none", action="enable")
    assert "It bound a = " in reader.text("/transactions/orders/k")
    assert "It has bound no event." in reader.text("/transactions/orders/k")
    furthest = {"waits_for": ["B b"], "more_waits_for": 2}
    answered(monkeypatch, {"/traces": {"items": [{"patterns": [{"name": "two", "furthest": furthest}]}]}})
    post(orders, *"X" * 300, first=2)
    reader.submit("/webhooks/none", action="enable")
    text = reader.text("/transactions/orders/k")
    assert "It holds no partial match. How its last one ended was not examined, because it sees more than 300" in text
    assert "waits for B b or 2 further steps." in text
    assert "None of its events" not in text


def test_the_table_of_a_process_says_from_how_many_events_it_is(reader, orders, monkeypatch):
    assert orders.put("/workflows/w", json={"tree": {"sequence": ["A", "B", "Z"]}}).status_code == 201
    assert orders.put("/streams/orders/workflow", json={"workflow": "w"}).status_code == 200
    answered(monkeypatch, {"/traces": {"counts_by_last_type": {}}})
    post(orders, "A", "B")
    reader.submit("/webhooks/none", action="enable")
    assert "events of the newest 2, early terminations of the newest 0" in reader.text("/process?stream=orders")


def test_a_chart_says_how_many_results_have_no_bar():
    chart = histogram(["1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"], "matches")
    assert chart is not None
    assert (chart.total, chart.older) == (2, 1)
    parts: Any = templates().get_template("parts.html").module
    drawn = str(parts.chart(chart, "Matches"))
    assert "; 1 older result has no bar</span>" in drawn


def test_the_overview_says_that_charts_by_hour_lack_hours(reader, orders, stores, monkeypatch):
    add_alerts(stores, *({"detected_at": f"2025-12-31T{hour}:00:00Z"} for hour in (20, 22)))
    cut = "The chart of alerts begins at 2025-12-31T21:00:00.000000Z: earlier hours have too many counts"
    reader.submit("/webhooks/none", action="enable")
    assert "The chart of" not in reader.text("/")
    monkeypatch.setattr("service.stores.results.hours._MOST_COUNTS", 1)
    reader.submit("/webhooks/none", action="enable")
    assert cut in reader.text("/")


def post(http, *types, first=0, stream="orders"):
    """Post events of one transaction, each of another customer."""
    for start in range(0, len(types), 100):
        events = [
            {
                "id": f"e{number}",
                "type": name,
                "time": number * 1_000,
                "subject": "k",
                "data": {"customer": f"c{number}"},
            }
            for number, name in enumerate(types[start : start + 100], first + start)
        ]
        assert http.post(f"/events?stream={stream}", json=events).json()["rejected"] == []


def answered(monkeypatch, answers):
    """Give the console answers that only a pipeline could give, by path of the API."""
    real = Api.get

    async def get(api, path, **parameters):
        return answers[path] if path in answers else await real(api, path, **parameters)

    monkeypatch.setattr(Api, "get", get)
