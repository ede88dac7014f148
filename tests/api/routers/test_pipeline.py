import pytest

from streams import TASKS_JOB_KEY, TASKS_OWNERS_KEY, log_key
from tests.builders.service import stats_row

pytestmark = pytest.mark.redis

PROGRESS = {
    "batch": 4,
    "started_us": 1_767_225_600_000_000,
    "duration_ms": 300.0,
    "parts_ms": {"plan": 20.0, "match": 280.0},
    "entries": 3,
    "events": 20,
    "bytes": 900,
    "rows": {"alert": 2},
    "shards": 1,
    "state_bytes": 5,
    "open_traces": 1,
    "held": 1,
    "watermark_lag_s": {},
}


def test_at_first_nothing_is_known_and_nothing_made_up(http):
    state = http.get("/v1/pipeline").json()
    nothing = {"entries": 0, "events": 0, "bytes": 0}
    assert state == {
        "running_since": None,
        "alive_at": None,
        "backlog": {
            "waiting_volume": nothing,
            "appended_volume": nothing,
            "matched_volume": nothing,
            "per_second": None,
            "max_events": 5_000_000,
            "max_bytes": 4 * 1024**3,
        },
        "last_batch": None,
        "batches": 0,
        "batch_parts_s": {},
        "shard_count": 0,
        "state_bytes": None,
        "streams": [],
        "executors": None,
    }


def test_a_running_pipeline_is_told_with_its_backlog_and_its_latest_batch(orders, stores, clock):
    now = clock.now_us()
    events = [{"id": f"e{n}", "type": "A", "time": n, "data": {"id": "k"}} for n in range(20)]
    assert orders.post("/v1/events?stream=orders", json=events).status_code == 202
    shard, position = next(
        (shard, entry.position)
        for shard in range(3)
        for entry in stores.log.read_range(shard)
        if entry.kind == "events"
    )
    waiting = orders.get("/v1/pipeline").json()["backlog"]["waiting_volume"]
    assert (waiting["entries"], waiting["events"]) == (1, 20)
    stores.pipeline_status.begin(now)
    stores.heartbeat.beat(now)
    fares = {"watermark_us": now - 1_500_000, "open_traces": 1, "held": 0, "waiting": 0, "late_dropped": 2}
    stores.pipeline_status.note([stats_row(shard, position, state_bytes=77, streams={"orders": fares})])
    stores.pipeline_status.keep(PROGRESS)
    state = orders.get("/v1/pipeline").json()
    assert state["running_since"] == state["alive_at"] == "2026-01-01T00:00:00.000000Z"
    assert state["backlog"]["waiting_volume"]["events"] == 0
    assert state["backlog"]["matched_volume"] == waiting
    assert state["last_batch"] == {
        "batch": 4,
        "started_at": "2026-01-01T00:00:00.000000Z",
        "duration_s": 0.3,
        "parts_s": {"plan": 0.02, "match": 0.28},
        "entries": 3,
        "events": 20,
        "bytes": 900,
        "result_counts": {"alert": 2},
        "shard_count": 1,
    }
    assert (state["batches"], state["batch_parts_s"]) == (1, {"match": 0.28, "plan": 0.02})
    assert (state["shard_count"], state["state_bytes"]) == (1, 77)
    assert state["streams"] == [
        {
            "name": "orders",
            "derived": False,
            "watermark": "2025-12-31T23:59:58.500000Z",
            "watermark_lag_s": 1.5,
            "open_traces": 1,
            "held_partial_matches": 0,
            "waiting_events": 0,
            "late_events": {"dropped": 2},
            "events_without_key": None,
        }
    ]


def test_at_first_the_plan_is_empty(http, stores):
    shards = [{"shard": shard, "task": None, "position": "0-0", "lag_s": 0.0} for shard in range(stores.log.shards())]
    assert http.get("/v1/pipeline/plan").json() == {
        "runtime": "continuous",
        "policy": "oldest-first",
        "tasks": [],
        "shards": shards,
        "engines": [],
    }


def costs(at_us, seconds, rows_in, cpu_us, **operators):
    measured = {
        "rows_in": rows_in,
        "cpu_ns": cpu_us * 1_000,
        "rows_out": sum(operators.values()),
        "operators": operators,
    }
    return {"at_us": at_us, "seconds": seconds, "streams": {"orders": {"pattern": measured}}}


def test_a_plan_has_shards_by_task_and_costs_over_all_shards(http, stores, clock):
    now = clock.now_us()
    rows = [
        stats_row(0, "1000-0", process=["host", 7], costs=costs(now, 2.0, 100, 600, a=10, b=0)),
        stats_row(1, "2000-0", process=["host", 8], costs=costs(now - 60_000_000, 4.0, 100, 200, a=30, b=10)),
    ]
    stores.client.xadd(log_key(0), {"kind": "tick"}, id="3500-0")
    stores.client.xadd(log_key(1), {"kind": "tick"}, id="2000-0")
    stores.pipeline_status.note(rows)
    plan = http.get("/v1/pipeline/plan").json()
    assert plan["tasks"] == [{"name": "host-7", "shards": [0]}, {"name": "host-8", "shards": [1]}]
    assert [(shard["position"], shard["lag_s"]) for shard in plan["shards"][:2]] == [("1000-0", 2.5), ("2000-0", 0.0)]
    assert plan["engines"] == [
        {
            "stream": "orders",
            "kind": "pattern",
            "events_per_s": 50.0,
            "cost_us": 4.0,
            "selectivity": 0.25,
            "priority": 0.1875,
            "cores": 0.0003,
            "operators": [
                {"name": "a", "selectivity": 0.2, "results_per_s": 5.0},
                {"name": "b", "selectivity": 0.05, "results_per_s": 0.0},
            ],
        }
    ]
    stores.client.hset(TASKS_OWNERS_KEY, mapping={"0": "t1", "1": "t1"})
    stores.client.set(TASKS_JOB_KEY, "job")
    stores.pipeline_status.note([stats_row(0, "3500-0", costs=costs(now, 1.0, 0, 0))])
    plan = http.get("/v1/pipeline/plan").json()
    assert plan["tasks"] == [{"name": "t1", "shards": [0, 1]}]
    assert plan["engines"][0]["events_per_s"] == 0.0
