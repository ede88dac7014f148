import re
from pathlib import Path

import httpx
import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from api import create_app
from service import AlertSink
from service.stores import RegisteredWebhook
from tests.builders.api import serving
from tests.builders.service import settings_for, sink_row, stats_row
from tests.builders.waiting import PATIENCE_S

pytestmark = pytest.mark.redis

PROGRESS = {
    "batch": 4,
    "started_us": 1_767_225_600_000_000,
    "duration_ms": 300.0,
    "parts_ms": {"plan": 20.0, "read": 100.0, "match": 120.0, "state": 10.0, "commit": 40.0, "other": 10.0},
    "entries": 3,
    "events": None,
    "bytes": 900,
    "rows": {"alert": 2},
    "shards": 1,
}


def scraped(http):
    answer = http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def send(http, count, name="e"):
    events = [{"id": f"{name}{n}", "type": "A", "time": n, "data": {"id": f"k{n % 7}"}} for n in range(count)]
    assert http.post("/v1/events?stream=orders", json=events).status_code == 202


def row(kind, name, /, **fields):
    body = {"id": name, "stream": "orders", "pattern": "p", "event_type": "A", "code": "c", **fields}
    return sink_row(kind=kind, stream="orders", id=name, body=orjson.dumps(body))


def ends(stores):
    found = {shard: [entry.position for entry in stores.log.read_range(shard)] for shard in range(3)}
    return {shard: positions[-1] for shard, positions in found.items() if positions}


def test_the_backlog_grows_with_events_and_shrinks_with_matching(orders, stores):
    send(orders, 40)
    metrics = scraped(orders)
    assert metrics["forestall_events_appended_total",] == metrics["forestall_backlog_events",] == 40
    assert metrics["forestall_backlog_entries",] == 3
    assert metrics["forestall_backlog_bytes",] > 1_000
    assert metrics["forestall_events_matched_total",] == 0
    assert metrics["forestall_backlog_limit_events",] == 5_000_000
    stores.pipeline_status.note([stats_row(shard, position) for shard, position in ends(stores).items()])
    metrics = scraped(orders)
    assert metrics["forestall_events_matched_total",] == 40
    assert metrics["forestall_backlog_events",] == metrics["forestall_backlog_bytes",] == 0


def test_what_nobody_knows_is_left_out(orders):
    metrics = scraped(orders)
    names = {name for name, *_ in metrics}
    for absent in ("watermark_lag_seconds", "open_traces", "state_bytes", "pipeline_silent_seconds", "alerts_total"):
        assert f"forestall_{absent}" not in names
    assert metrics["forestall_events_appended_total",] == 0


def test_batches_are_a_summary_by_part(orders, stores):
    for _ in range(2):
        stores.pipeline_status.keep(PROGRESS)
    metrics = scraped(orders)
    assert metrics["forestall_batch_seconds_count", "match"] == 2
    assert metrics["forestall_batch_seconds_sum", "match"] == pytest.approx(0.24)
    assert sum(value for name, value in metrics.items() if name[0] == "forestall_batch_seconds_sum") == pytest.approx(
        0.6
    )


def test_shards_are_added_up_and_the_slowest_watermark_counts(orders, stores, clock):
    now = clock.now_us()
    orders_0 = {"watermark_us": now - 5_000_000, "open_traces": 3, "held": 1, "waiting": 2, "late_dropped": 4}
    orders_1 = {"watermark_us": now - 9_000_000, "open_traces": 4, "held": 2, "late_dropped": 1, "late_processed": 6}
    rows = [
        stats_row(0, "1-0", state_bytes=100, streams={"orders": orders_0}),
        stats_row(1, "1-0", state_bytes=50, streams={"orders": orders_1, "payments": {"open_traces": 1}}),
    ]
    stores.pipeline_status.note(rows)
    stores.heartbeat.beat(now - 2_000_000)
    metrics = scraped(orders)
    assert metrics["forestall_watermark_lag_seconds", "orders"] == 9
    assert ("forestall_watermark_lag_seconds", "payments") not in metrics
    assert metrics["forestall_open_traces", "orders"] == 7
    assert metrics["forestall_open_traces", "payments"] == 1
    assert metrics["forestall_held_partial_matches", "orders"] == 3
    assert metrics["forestall_waiting_events", "orders"] == 2
    assert metrics["forestall_late_events_total", "dropped", "orders"] == 5
    assert metrics["forestall_late_events_total", "orders", "processed"] == 6
    assert metrics["forestall_state_bytes",] == 150
    assert metrics["forestall_pipeline_silent_seconds",] == 2


def test_what_is_found_is_counted_once(orders, stores, clock):
    stores.webhooks.put(
        RegisteredWebhook(
            id="w", url="http://x", secret="whsec_", stream=None, pattern=None, is_enabled=True, registered_us=0
        )
    )
    rows = [
        row("alert", "a1"),
        row("alert", "a2"),
        row("ending", "e1", form="p1", constraints=["c"], atom="x"),
        row("ending", "e2", form="p1", constraints=["d"], atom="y"),
        row("ending", "e3", form="end"),
        row("timeout", "t1", missing=["b"]),
        row("correction", "c1", alert="a1"),
        row("deviation", "d1", kind="order"),
        row("dead-letter", "l1"),
    ]
    for _ in range(2):
        AlertSink(stores, clock)(rows, 5)
    metrics = scraped(orders)
    assert metrics["forestall_alerts_total", "orders", "p"] == 2
    assert metrics["forestall_early_endings_total", "orders", "p", "p1"] == 2
    assert metrics["forestall_early_endings_total", "end", "orders", "p"] == 1
    assert metrics["forestall_timeouts_total", "orders", "p"] == 1
    assert metrics["forestall_corrections_total", "orders", "p"] == 1
    assert metrics["forestall_deviations_total", "order", "orders"] == 1
    assert metrics["forestall_dead_letters_total", "c", "orders"] == 1
    assert metrics["forestall_pattern_limits_reached_total", "c", "orders", "p"] == 1
    assert metrics["forestall_webhook_queue",] == 3
    assert metrics["forestall_alert_latency_seconds_count",] == 2, "a batch that is written again is not counted again"
    assert metrics["forestall_webhook_attempts_total", "delivered", "w"] == 0
    assert metrics["forestall_webhook_circuit_open", "w"] == 0


def test_metrics_ask_for_the_key_where_there_is_one(stranger, server_url, stores, clock, check_problem):
    check_problem(stranger.get("/metrics"), 401, "unauthorized")
    with (
        serving(create_app(settings_for(server_url), clock)) as url,
        httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as client,
    ):
        assert scraped(client)["forestall_backlog_events",] == 0


def test_every_metric_says_what_it_means(orders):
    for family in text_string_to_metric_families(orders.get("/metrics").text):
        assert family.name.startswith("forestall_")
        assert family.documentation.endswith(".")
        assert family.type in ("counter", "gauge", "summary", "histogram")


def test_the_table_of_metrics_names_them_all(orders, stores, clock):
    text = (Path(__file__).parents[3] / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `forestall_")]
    named = {name for line in rows for name in re.findall(r"`(forestall_\w+)`", line.split("|")[1])}
    families = text_string_to_metric_families(orders.get("/metrics").text)
    found = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    assert named == found
