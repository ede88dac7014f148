"""Pages over real results: what they show, to whom, and what they do with texts of others."""

import re
from html import unescape
from urllib.parse import quote

import pytest

from console.views.streams import dearest
from shards import RESULT_KINDS, USUAL_KINDS
from tests.builders.console import add_alerts, add_attempt, incident

pytestmark = pytest.mark.redis

EVIL = "<img src=x onerror=alert(1)>\"'&"
PAGES = (
    *("/", "/alerts", "/incidents", "/process", "/patterns", "/editor", "/streams", "/webhooks", "/ask"),
    "/dead-letters",
)
CHANGING = re.compile(r'<form method="post" action="(?!/logout)')
MAIL = {"kind": "email", "host": "127.0.0.1", "port": 9, "sender": "a@example.org", "recipients": ["b@example.org"]}
HOURLY = {"by": ["key"], "for": "1 h"}
GROUPED = {"by": ["key"], "close_after": "2 h"}


@pytest.mark.parametrize("path", PAGES)
def test_an_empty_service_says_what_to_do_next(reader, path):
    text = reader.text(path)
    assert 'class="empty"' in text


@pytest.mark.parametrize("path", [*PAGES, "/patterns/p", "/streams?stream=orders"])
def test_pages_show_a_service_with_a_stream(reader, orders, path):
    assert "<h1>" in reader.text(path)


def test_an_engine_without_events_is_the_cheapest():
    engines = [{"cores": 0.1, "cost_us": cost_us} for cost_us in (None, 2.0, 3.0)]
    assert [one["cost_us"] for one in dearest(engines)] == [3.0, 2.0, None]


def test_an_alert_is_shown_acknowledged_and_noted(reader, orders, stores):
    add_alerts(stores, {"key": "order-1"})
    path = f"/alerts/{0:032x}"
    assert path in reader.text("/alerts")
    assert "order-1" in reader.text(path)
    reader.submit(f"{path}/acknowledge")
    reader.submit(f"{path}/notes", text="called the customer")
    text = reader.text(path)
    assert "called the customer" in text
    assert "Acknowledged by" in text


def test_lists_of_alerts_name_their_order(reader, orders, stores):
    add_alerts(stores, {"key": "order-1"})
    assert "The last found first. <i>Detected</i> is an event time." in reader.text("/alerts")
    assert "the last found first, with event times" in reader.text("/")


def test_an_alert_shows_the_text_of_its_version(reader, orders, stores):
    changed = {"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b, D d)"}
    assert orders.put("/patterns/p", json=changed).is_success
    add_alerts(stores, {"key": "order-1"})
    text = reader.text(f"/alerts/{0:032x}")
    assert "version 1" in text
    assert "(A a, B b)" in text
    assert "D d" not in text


def event(number, kind, **members):
    """An event; those with larger numbers are later."""
    return {"id": f"e{number}", "type": kind, "time": number * 1_000, **members}


def test_an_alert_of_a_further_key_shows_its_events_and_transaction(reader, http, stores):
    declared = {"name": "shop", "key": "data.id", "keys": {"customer": "data.customer"}}
    assert http.post("/streams", json=declared).status_code == 201
    habit = {"stream": "shop", "text": "PATTERN habit EVENT SEQ(A a, B b) WHERE [customer]"}
    assert http.post("/patterns", json=habit).status_code == 201
    orders = [event(1, "A", data={"id": "o1", "customer": "ann"}), event(2, "B", data={"id": "o2", "customer": "ann"})]
    assert http.post("/events?stream=shop", json=orders).json()["rejected"] == []
    add_alerts(stores, {"stream": "shop", "pattern": "habit", "key": "ann", "route": "customer"})
    text = reader.text(f"/alerts/{0:032x}")
    assert text.count('<li class="bound">') == 2
    assert "No longer in the log" not in text
    link = "/transactions/shop/ann?by=customer"
    assert f'href="{link}"' in text
    assert f'href="{link}"' in reader.text("/alerts")
    reader.submit(f"/alerts/{0:032x}/acknowledge")
    assert reader.get("/find?key=ann").headers["location"] == link
    assert "habit" in reader.text(link)


def test_incidents_and_dry_runs_of_a_further_key_link_to_its_transactions(reader, http, stores):
    declared = {"name": "shop", "key": "data.id", "keys": {"customer": "data.customer"}}
    assert http.post("/streams", json=declared).status_code == 201
    text = "PATTERN habit EVENT SEQ(A a, B b) WHERE [customer]"
    habit = {"stream": "shop", "text": text, "incident": {**GROUPED, "by": ["customer"]}}
    assert http.post("/patterns", json=habit).status_code == 201
    orders = [event(1, "A", data={"id": "o1", "customer": "ann"}), event(2, "B", data={"id": "o2", "customer": "ann"})]
    assert http.post("/events?stream=shop", json=orders).json()["rejected"] == []
    stores.incidents.note([incident(stream="shop", pattern="habit", key="ann")])
    reader.submit("/incidents/i1", action="acknowledge")  # pages no longer show what earlier tests have read
    link = 'href="/transactions/shop/ann?by=customer"'
    assert link in reader.text("/incidents")
    trial = reader.submit("/trials/dry-run", stream="shop", text=text, events="10").text
    assert "<b>1 time</b>" in trial
    assert link in trial
    of_orders = {"stream": "shop", "text": "PATTERN habit EVENT SEQ(A a, B b)", "incident": {**GROUPED, "by": ["id"]}}
    assert http.put("/patterns/habit", json=of_orders).json()["version"] == 2
    changes = [incident(stream="shop", pattern="habit", version=2, key="o1", incident="i2")]
    stores.incidents.note([*changes, incident(stream="shop", pattern="deleted", key="o3", incident="i3")])
    text = reader.text("/incidents")
    assert link in text
    assert 'href="/transactions/shop/o1"' in text
    assert 'href="/transactions/shop/o3"' in text


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (0, "No longer in the log: e1 (a), e2 (b)"),
        (202, "Not among the newest 200 events of the transaction: e1 (a), e2 (b)"),
        (5_002, "and at most 5000 are replayed"),
    ],
)
def test_an_alert_says_why_its_time_line_lacks_events(reader, orders, stores, events, reason):
    for first in range(1, events + 1, 1_000):
        numbers = range(first, min(first + 1_000, events + 1))
        posted = orders.post("/events?stream=orders", json=[event(number, "A", subject="long") for number in numbers])
        assert posted.json()["rejected"] == []
    add_alerts(stores, {"key": "long"})
    path = f"/alerts/{0:032x}"
    assert reason in reader.text(path)
    reader.submit(f"{path}/acknowledge")
    assert "Acknowledged by" in reader.text(path)
    assert reader.get("/find?key=long").status_code == (303 if events else 404)
    if events:
        text = reader.text("/transactions/orders/long")
        assert f"{events:,}, the newest 200" in text
        assert text.count('<span class="what">') == 200
        assert ("patterns are matched again in at most 5,000 events" in text) == (events > 5_000)


def test_ten_thousand_alerts_are_paged(reader, orders, stores):
    add_alerts(stores, *({"id": f"{number:032x}"} for number in range(10_000)))
    seen: list[str] = []
    path = "/alerts"
    for _ in range(3):
        text = reader.text(path)
        seen += re.findall(r'data-id="(\w+)"', text)
        assert len(text) < 100_000
        path = re.findall(r'href="([^"]+)" rel="next"', text)[0].replace("&amp;", "&")
    assert len(seen) == len(set(seen)) == 150
    assert seen[0] == f"{9_999:032x}"


def test_filters_are_in_the_address(reader, orders, stores):
    add_alerts(stores, {"key": "x"}, {"key": "y"})
    text = reader.text("/alerts?key=y&stream=orders&acknowledged=false")
    assert re.findall(r'data-id="(\w+)"', text) == [f"{1:032x}"]
    assert 'value="y"' in text


def test_texts_of_others_are_texts(reader, http, stores):
    """Names, keys, attributes, notes, reasons and models reach pages as they are, and never as HTML."""
    http.post("/streams", json={"name": "orders", "description": EVIL})
    http.post("/patterns", json={"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b) WHERE a.x = '<b>1</b>'"})
    http.post("/webhooks", json={"stream": "orders", "url": "http://127.0.0.1:9/?<script>", "description": EVIL})
    http.post("/events?stream=orders", json=[{"id": EVIL, "type": ""}])
    add_alerts(stores, {"key": EVIL, "why": EVIL, "bindings": {"a": [EVIL]}, "returns": {"<script>": EVIL}})
    stores.incidents.note([incident(key=EVIL, why=EVIL, group={"<script>": EVIL})])
    aggregate = {
        "name": "n",
        "of": "orders",
        "values": {"n": "count()"},
        "window": "1 d",
        "having": "n > 1 AND '<script>' = '<b>1</b>'",
    }
    assert http.post("/aggregates", json=aggregate).status_code == 201
    path = f"/alerts/{0:032x}"
    reader.submit(f"{path}/notes", text=EVIL)
    webhook = http.get("/webhooks").json()["items"][0]["id"]
    letter = http.get("/dead-letters").json()["items"][0]["id"]
    shown = (
        "/",
        "/alerts",
        path,
        "/streams?stream=orders",
        "/webhooks",
        f"/webhooks/{webhook}",
        "/dead-letters",
        "/incidents",
        "/streams?operator=n",
        "/webhooks/new",
    )
    texts = [
        reader.text(one) for one in (*shown, f"/dead-letters/{letter}", "/patterns/p", f"/alerts?key={'<script>'}")
    ]
    for text in texts:
        assert "<img" not in text
        assert "<script>" not in text
        assert "<b>1</b>" not in text
    assert sum("onerror=alert(1)&gt;" in text for text in texts) >= 7


def test_a_reading_key_is_offered_no_change(visitor, orders, stores, http):
    add_alerts(stores, {})
    http.post("/webhooks", json={"stream": "orders", "url": "http://127.0.0.1:9/"})
    http.post("/events?stream=orders", json=[{"id": "bad"}])
    key = http.post("/keys", json={"name": "guest", "scopes": ["read"]}).json()["token"]
    webhook = http.get("/webhooks").json()["items"][0]["id"]
    stores.incidents.note([incident()])
    paths = (
        "/",
        "/alerts",
        f"/alerts/{0:032x}",
        "/patterns",
        "/patterns/p",
        f"/webhooks/{webhook}",
        "/dead-letters",
        "/incidents",
    )
    visitor.log_in(key)
    for path in paths:
        assert not CHANGING.search(visitor.text(path)), path
    answer = visitor.submit("/patterns/p", action="pause")
    assert answer.status_code == 303
    assert "needs the scope patterns" in visitor.text("/patterns/p")
    assert http.get("/patterns/p").json()["state"] == "active"
    answer = visitor.submit("/webhooks/new", url="http://127.0.0.1:9/", **{"kind alert": "1"})
    assert "needs the scope patterns" in answer.text
    assert "/webhooks/new" not in visitor.text("/webhooks")


def test_a_restricted_key_sees_its_stream(visitor, orders, stores, http):
    http.post("/streams", json={"name": "hidden-stream"})
    add_alerts(stores, {"key": "mine"}, {"key": "theirs", "stream": "hidden-stream", "pattern": "q"})
    key = http.post("/keys", json={"name": "guest", "scopes": ["read"], "streams": ["orders"]}).json()["token"]
    visitor.log_in(key)
    stores.incidents.note([incident(stream="hidden-stream", key="theirs")])
    http.post("/webhooks", json={"stream": "hidden-stream", "url": "http://127.0.0.1:9/hidden-stream"})
    for path in (*PAGES, "/webhooks/new"):
        assert "hidden-stream" not in visitor.text(path), path
    text = visitor.text("/alerts")
    assert "mine" in text
    assert "theirs" not in text


def test_a_pattern_is_written_paused_resumed_and_changed(reader, orders):
    text = "PATTERN q\nEVENT SEQ(A a, C c)"
    answer = reader.submit("/editor", stream="orders", text=text, severity="high", constraints="on", state="draft")
    assert answer.headers["location"] == "/patterns/q"
    assert orders.get("/patterns/q").json()["severity"] == "high"
    for action, state in (("activate", "active"), ("pause", "paused"), ("resume", "active")):
        reader.submit("/patterns/q", action=action)
        assert orders.get("/patterns/q").json()["state"] == state
    better = f"{text}\nWITHIN 1 h"
    members = {"stream": "orders", "severity": "low", "constraints": "on", "state": "active", "start": "migrate"}
    reader.submit("/editor?pattern=q", text=better, **members)
    assert '<span class="added">+ WITHIN 1 h</span>' in reader.text("/patterns/q")
    reader.submit("/patterns/q", action="retire")
    assert orders.get("/patterns/q").json()["state"] == "retired"


@pytest.mark.parametrize("rules", [{"suppress": HOURLY, "incident": GROUPED}, {"resolves": {"pattern": "p"}}])
def test_the_next_version_keeps_the_rules_of_alerts(reader, orders, rules):
    former = {"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)", "incident": GROUPED}
    assert orders.put("/patterns/p", json=former).status_code == 200
    text = "PATTERN q EVENT SEQ(A a, C c)"
    created = orders.post("/patterns", json={"stream": "orders", "text": text, **rules})
    assert created.status_code == 201, created.text
    orders.post("/patterns/q/pause")
    editor = reader.text("/editor?pattern=q")
    assert '<option value="paused" selected>' in editor
    for name in rules:
        assert name in editor
        assert f"<dt>{name.capitalize()}</dt>" in reader.text("/patterns/q")
    members = {"stream": "orders", "severity": "low", "constraints": "on", "state": "paused", "start": "fresh"}
    answer = reader.submit("/editor?pattern=q", text=f"{text} WITHIN 1 h", **members)
    assert answer.status_code == 303
    stored = orders.get("/patterns/q").json()
    assert (stored["version"], stored["state"]) == (2, "paused")
    kept = ("suppress", "incident", "resolves")
    assert {name: stored[name] for name in kept} == {name: created.json()[name] for name in kept}


def test_a_version_of_somebody_else_is_not_replaced(reader, orders):
    editor = reader.text("/editor?pattern=p")
    tag = re.findall(r'name="etag" value="([^"]+)"', editor)[0]
    mine, theirs = (f"PATTERN p EVENT SEQ(A a, B b) WITHIN {number} h" for number in (1, 2))
    assert orders.put("/patterns/p", json={"stream": "orders", "text": theirs}).status_code == 200
    members = {"stream": "orders", "severity": "low", "constraints": "on", "state": "active", "start": "fresh"}
    for _ in range(2):
        answer = reader.submit("/editor?pattern=p", text=mine, etag=unescape(tag), **members)
        assert answer.status_code == 400
        assert mine in answer.text
        assert "has been changed since" in answer.text
        tag = re.findall(r'name="etag" value="([^"]+)"', answer.text)[0]
    assert orders.get("/patterns/p").json()["text"] == theirs


def test_the_editor_begins_with_the_text_of_the_address(reader, orders):
    text = reader.text("/editor?stream=orders&text=PATTERN+x+%3C%2Ftextarea%3E%3Cscript%3E")
    assert "PATTERN x &lt;/textarea&gt;&lt;script&gt;</textarea>" in text
    assert "PATTERN y</textarea>" in reader.text("/editor?pattern=p&text=PATTERN+y")


def test_a_name_that_exists_is_not_replaced(reader, orders):
    text = "PATTERN p EVENT SEQ(X x)"
    answer = reader.submit("/editor", stream="orders", text=text, severity="low", constraints="on", state="active")
    assert answer.status_code == 400
    assert text in answer.text
    assert orders.get("/patterns/p").json()["version"] == 1


def test_the_editor_shows_rare_types_of_declaration_workflow_and_schemas(reader, http):
    http.post("/streams", json={"name": "rare", "event_types": ["Order", "Refund"]}).raise_for_status()
    http.put("/workflows/returns", json={"tree": {"sequence": ["Order", "Return"]}}).raise_for_status()
    http.put("/workflows/others", json={"tree": {"sequence": ["Order", "Elsewhere"]}}).raise_for_status()
    http.put("/streams/rare/workflow", json={"workflow": "returns"}).raise_for_status()
    http.put("/streams/rare/event-types/Recall", json={"properties": {"batch": {}}}).raise_for_status()
    event = {"id": "1", "type": "Order", "time": "2026-01-01T00:00:00Z", "subject": "k", "data": {"price": 3}}
    http.post("/events?stream=rare", json=[event]).raise_for_status()
    reader.submit("/webhooks/none", action="enable")  # so that no answer from before is reused
    words = re.findall(r"<li><b>(\w+)</b> <span class=\"muted\">([^<]*)", reader.text("/editor?stream=rare"))
    assert words == [("Order", "price"), ("Recall", "batch"), ("Refund", ""), ("Return", "")]


@pytest.mark.parametrize("name", ["new", "x/edit", "new/edit", "editor"])
def test_a_pattern_of_any_name_has_a_page_and_an_editor(reader, orders, name):
    created = orders.post("/patterns", json={"stream": "orders", "text": f"PATTERN `{name}` EVENT SEQ(A a, C c)"})
    assert created.status_code == 201, created.text
    path = f"/patterns/{quote(name, safe='')}"
    editor = re.findall(r'href="([^"]+)">Next version', reader.text(path))[0]
    assert f"<h1>Next version of {name}</h1>" in reader.text(editor)
    assert reader.submit(path, action="pause").status_code == 303
    assert orders.get(path).json()["state"] == "paused"


def test_an_incomplete_form_of_the_editor_is_refused(reader, orders):
    for path in ("/editor", "/editor?pattern=p"):
        assert reader.submit(path).status_code == 400


def test_a_refused_backtest_keeps_the_text_of_the_editor(reader, orders):
    members = {"stream": "orders", "text": "PATTERN mine EVENT SEQ(A a,", "severity": "high", "constraints": "off"}
    for against in ({}, {"against": "p", "etag": "t"}):
        answer = reader.submit("/trials/backtest", **members, **against)
        assert answer.status_code == 400
        assert members["text"] in answer.text
        assert '<option value="off" selected>' in answer.text
        assert f'action="/editor{"?pattern=p" if against else ""}"' in answer.text


def test_the_check_says_where_a_pattern_is_wrong(reader, orders):
    token = reader.token()
    bad = reader.submit_raw("/trials/check", token=token, stream="orders", text="PATTERN q\nEVENT SEQ(A a")
    assert (bad.json()["line"], bad.json()["error"] != "") == (2, True)
    good = reader.submit_raw("/trials/check", token=token, stream="orders", text="PATTERN q EVENT SEQ(A a, B b)")
    assert good.json() == {"error": None, "warnings": []}


def test_a_warning_about_a_registered_pattern_is_no_message_of_success(reader, orders):
    orders.post("/constraints?stream=orders", json=[{"prior": ["Order", "CancelOrder"]}]).raise_for_status()
    text = "PATTERN q EVENT SEQ(Order o, CancelOrdr c) WITHIN 1 h"
    reader.submit("/editor", stream="orders", text=text, severity="high", constraints="on", state="active")
    page = reader.text("/patterns/q")
    assert re.search(
        r'<p class="banner warn" role="alert">Warning: [^<]*CancelOrdr \(did you mean CancelOrder\?\)', page
    )
    assert '<p class="banner ok" role="status">q is registered as version 1.' in page


def test_the_check_and_a_backtest_without_matches_name_what_no_event_has(reader, orders, stores):
    event = {"id": "1", "type": "GenerateQuote", "time": "2026-01-01T00:00:00Z", "data": {"totalPrice": 3}}
    for number in range(2):
        orders.post("/events?stream=orders", json=[{**event, "id": str(number), "subject": "k"}]).raise_for_status()
    text = "PATTERN q EVENT SEQ(GenerateQuote q [totlPrice > 200], GenrateQuote g, Rare r)"
    form = {"token": reader.token(), "stream": "orders", "text": text}
    event_type, attribute = reader.submit_raw("/trials/check", **form).json()["warnings"]
    assert "GenrateQuote (did you mean GenerateQuote?) is none of the event types in these events" in event_type
    assert "no event of the type GenerateQuote has totlPrice (did you mean totalPrice?)" in attribute
    asked = {"stream": "orders", "pattern": text, "source": {"log": True}}
    for alerts, path in ((0, None), (1, None), (0, "orders.jsonl")):
        backtest = orders.post("/backtests", json=asked).json()["id"]
        numbers = "timeouts endings deviations corrections dead_letters released open_traces peak_held"
        measured = dict.fromkeys([*numbers.split(), "peak_state_bytes", "busy_s"], 0)
        by_name: dict[str, dict[str, int]] = {"alerts_by_pattern": {}, "dead_letters_by_code": {}}
        variants = [{"name": "pattern", "alerts": alerts, **measured, **by_name}]
        summary = {"events": 2, "variants": variants, "comparisons": [], "alerts_kept": 0, "read_s": 1.0}
        summary |= {"first_time": None, "last_time": None, "match_s": 2.0}
        stores.backtests.keep_result(backtest, summary, [])
        stores.backtests.advance(backtest, ("queued",), status="done", progress=1.0, path=path)
        is_warned = "did you mean totalPrice?" in reader.text(f"/backtests/{backtest}")
        assert is_warned == (alerts == 0 and path is None)


def test_dead_letters_are_sent_again(reader, orders):
    orders.post("/events?stream=orders", json=[{"id": "bad"}])
    letter = orders.get("/dead-letters").json()["items"][0]["id"]
    reader.submit(f"/dead-letters/{letter}")
    assert "Refused again" in reader.text(f"/dead-letters/{letter}")
    reader.submit("/dead-letters", stream="orders", code="event-rejected")
    assert "0 events accepted, 1 refused again" in reader.text("/dead-letters")


@pytest.mark.parametrize(("receivers", "target"), [("webhooks", {"url": "http://127.0.0.1:9/"}), ("sinks", MAIL)])
def test_a_receiver_is_tested_and_switched_off_by_the_buttons_of_its_page(reader, orders, receivers, target):
    created = orders.post(f"/{receivers}", json={"stream": "orders", **target})
    assert created.status_code == 201, created.text
    path = f"/{receivers}/{created.json()['id']}"

    def press(action):
        """Press a button of the page; returns the next page."""
        form = re.search(rf'<form method="post" action="([^"]*)"(?:(?!</form>).)*value="{action}"', reader.text(path))
        assert form, action
        reader.submit(form[1], action=action)
        return reader.text(path)

    assert "was not delivered" in press("test")
    press("disable")
    assert orders.get(path).json()["enabled"] is False
    press("enable")
    assert orders.get(path).json()["enabled"] is True
    reader.submit(path, action="unknown")
    assert orders.get(path).json()["enabled"] is True


def test_the_form_of_a_webhook_has_all_kinds_of_results_and_chooses_the_usual(reader, orders):
    boxes = re.findall(r'name="kind ([a-z.]+)" value="1"( checked)?', reader.text("/webhooks/new"))
    assert {kind for kind, _ in boxes} == {kind.delivered_as for kind in RESULT_KINDS.values() if kind.delivered_as}
    assert {kind for kind, checked in boxes if checked} == set(USUAL_KINDS)


def test_a_webhook_is_registered_and_its_secret_shown_once(reader, orders):
    members = {"url": "http://127.0.0.1:9/", "stream": "orders", "min_severity": "high", "name": "shop"}
    answer = reader.submit("/webhooks/new", **members, **{"kind alert": "1", "kind ending": "1"})
    path = answer.headers["location"]
    made = orders.get(path).json()
    assert (made["kinds"], made["min_severity"], made["pattern"]) == (["alert", "ending"], "high", None)
    assert "whsec_" in reader.text(path)
    assert "whsec_" not in reader.text(path)
    refused = reader.submit("/webhooks/new", url="http://127.0.0.1:9/", name="shop", **{"kind alert": "1"})
    assert refused.status_code == 400
    assert 'value="shop"' in refused.text


def test_deliveries_of_an_alert_are_those_to_any_receiver(reader, orders, stores, settings):
    hook = orders.post("/webhooks", json={"stream": "orders", "url": "http://127.0.0.1:9/", "description": "pager"})
    sink = orders.post("/sinks", json={"kind": "kafka", "servers": "127.0.0.1:9", "topic": "t", "name": "archive"})
    attempts = [{"item": f"{0:032x}", "verdict": "delivered"}, {"item": f"{1:032x}", "verdict": "dead"}]
    add_alerts(stores, {}, {})
    for receiver in (hook, sink):
        for attempt in attempts:
            add_attempt(stores, receiver.json()["id"], **attempt)
    text = reader.text(f"/alerts/{0:032x}")
    assert text.count("delivered 204") == 2
    assert ("pager" in text, "archive" in text, "abandoned" in text) == (True, True, False)
    assert "archive" in reader.text("/webhooks")
    assert "abandoned" in reader.text(f"/sinks/{sink.json()['id']}")


def test_incidents_are_listed_by_state_and_closed_on_request(reader, orders, stores):
    stores.incidents.note([incident(), incident(incident="i2", key="order-2", state="closed")])
    assert "1 incident is open." in reader.text("/")
    text = reader.text("/incidents")
    assert ("order-1" in text, "order-2" in text) == (True, False)
    assert "order-2" in reader.text("/incidents?state=")
    reader.submit("/incidents/i1", action="close")
    assert "The incident will be closed" in reader.text("/incidents")


def test_reasons_of_endings_do_not_claim_that_nothing_matched(reader, orders):
    assert "in transactions with a match or without" in reader.text("/patterns/p")


def test_the_overview_counts_by_hour_however_many_alerts_there_are(reader, orders, stores):
    add_alerts(stores, *({"detected_at": f"2025-12-31T2{number % 3}:00:00Z"} for number in range(900)))
    text = reader.text("/")
    assert "900 in 48 hours" in text
    assert "2025-12-31 22:00 UTC: 300 alerts" in text


def test_joins_and_aggregates_have_a_page(reader, orders):
    aggregate = {"name": "busy", "of": "orders", "values": {"n": "count()"}, "window": "1 d", "having": "n > 1"}
    assert orders.post("/aggregates", json=aggregate).status_code == 201
    assert "/streams?operator=busy#chosen" in reader.text("/streams")
    text = reader.text("/streams?operator=busy")
    assert "How it is computed" in text
    assert "n &gt; 1" in text


def test_a_reason_names_no_operation_of_the_api(reader):
    text = reader.get("/patterns/new").text
    assert "<h1>Not found</h1>" in text
    assert ">there is no pattern &#39;new&#39;</p>" in text


def test_what_does_not_exist_says_so(reader, orders):
    for path in ("/nothing", "/alerts/0", "/patterns/none", "/find?key=nobody", "/webhooks/x", "/static/0/../app.py"):
        answer = reader.get(path)
        assert answer.status_code in (400, 404), path
