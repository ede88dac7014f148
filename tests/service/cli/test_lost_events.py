"""Late events and dead letters are named by the commands that read events, and by the status of the service."""

import httpx
import orjson
import pytest

from api import create_app
from tests.builders.api import serving
from tests.builders.service import settings_for, stats_row
from tests.builders.waiting import PATIENCE_S

STREAM = """
kind: stream
name: s
lateness: 5
late: {late}
---
{{kind: pattern, name: p, stream: s, text: 'PATTERN p EVENT SEQ(A a, B b)'}}
"""
CASE = """
kind: test
name: late
files: {s: e.jsonl}
expect:
  alerts: [p a=c b=b]
"""


def write(folder, late):
    (folder / "base.yaml").write_text(STREAM.format(late=late))
    times = [("a", "A", 0), ("b", "B", 50), ("c", "A", 10), ("d", "A", 11)]
    events = [
        {"id": name, "type": kind, "time": f"2026-01-01T00:00:{second:02}Z", "key": "k", "data": {}}
        for name, kind, second in times
    ]
    (folder / "e.jsonl").write_bytes(b"\n".join(map(orjson.dumps, events)))


@pytest.mark.parametrize(
    ("late", "counted", "letters"),
    [
        ("drop", {"dropped": 2}, None),
        ("dead_letter", {"dead_lettered": 2}, {"s": {"late-event": 2}}),
        ("process", {"processed": 2}, None),
    ],
)
def test_a_run_counts_late_events_and_dead_letters(tmp_path, call, late, counted, letters):
    write(tmp_path, late)
    status, out, err = call("run", ".", "--events", "e.jsonl", "--output", "json")
    stats = orjson.loads(out)["stats"]
    assert (status, stats["late_events"], stats.get("dead_letters")) == (0, {"s": counted}, letters)
    (action,) = counted
    said = f"s: late events: 2 {action.replace('_', '-')}; a larger lateness of the stream waits longer for them"
    assert " ".join(err.split()).count(said) == 1
    assert ("dead letters: 2 late-event" in " ".join(err.split())) == (letters is not None)


def test_a_run_in_order_says_nothing(tmp_path, call):
    write(tmp_path, "drop")
    lines = (tmp_path / "e.jsonl").read_bytes().splitlines()
    (tmp_path / "e.jsonl").write_bytes(b"\n".join(lines[:2]))
    status, out, err = call("run", ".", "--events", "e.jsonl", "--output", "json")
    assert (status, orjson.loads(out)["stats"], "late" in err) == (0, {"events": 2}, False)


def test_a_test_that_fails_names_its_late_events(tmp_path, call):
    write(tmp_path, "dead_letter")
    (tmp_path / "case.yaml").write_text(CASE)
    status, out, err = call("test", ".")
    assert (status, "FAILED" in out) == (1, True)
    assert "s: late events: 2 dead-lettered" in " ".join(err.split())


@pytest.mark.redis
def test_the_status_names_waiting_and_late_events_and_dead_letters(call, server_url, stores):
    with serving(create_app(settings_for(server_url))) as url:
        for name in ("orders", "fares"):
            assert call("streams", "add", name, "--key", "data.id", "--lateness", "5", "--url", url)[0] == 0
        counts = {"watermark_us": 0, "open_traces": 1, "held": 0, "waiting": 3, "late_dead_lettered": 2}
        stores.pipeline_status.note([stats_row(0, "1-0", state_bytes=1, streams={"orders": counts})])
        refused = [{"id": "x", "type": "A", "time": 1_000_000, "data": {}}]
        assert httpx.post(f"{url}/v1/events?stream=orders", json=refused, verify=False, timeout=PATIENCE_S).json()[
            "rejected"
        ]
        out = call("status", "--over", "0", "--json", "--url", url)[1]
    found = orjson.loads(out)
    assert (found["backlog_events"], "waiting_events" in found) == (0, False)
    orders = found["streams"]["orders"]
    assert (orders["waiting_events"], orders["late_events"], orders["dead_letters"]) == (3, {"dead_lettered": 2}, 1)


@pytest.mark.redis
def test_the_status_counts_events_without_a_key_of_a_join(call, server_url, stores):
    with serving(create_app(settings_for(server_url))) as url:
        counts = {"watermark_us": 0, "waiting": 0, "join_without_key": 2}
        for shard in range(2):
            told = {"paid.inputs": counts, "orders": {"watermark_us": 0, "waiting": 0}}
            stores.pipeline_status.note([stats_row(shard, "1-0", state_bytes=1, streams=told)])
        found = orjson.loads(call("status", "--over", "0", "--json", "--url", url)[1])["streams"]
    assert (found["paid.inputs"]["events_without_key"], "events_without_key" in found["orders"]) == (4, False)


COMPARED = """
{kind: stream, name: s}
---
kind: pattern
name: large
stream: s
text: "PATTERN large EVENT A a [amount > 100] RETURN a.amount AS amount INTO bigs"
---
kind: pattern
name: medium
stream: bigs
text: "PATTERN medium EVENT large a [amount = 200]"
---
kind: pattern
name: exact
stream: s
text: "PATTERN exact EVENT A a [note = 5]"
"""
COMPARED_CASE = """
kind: test
name: t{number}
events:
  - {{id: x, type: A, time: "2026-01-01T00:00:00Z", key: k, data: {{amount: {amount}, note: text}}}}
expect: {{alerts: []}}
"""


def test_a_run_counts_comparisons_of_texts_with_numbers(tmp_path, call):
    (tmp_path / "p.yaml").write_text(COMPARED)
    amounts = ["250", 300, "n/a"]
    lines = [
        {"id": str(n), "type": "A", "time": "2026-01-01T00:00:00Z", "key": "k", "data": {"amount": one, "note": "x"}}
        for n, one in enumerate(amounts)
    ]
    (tmp_path / "e.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    status, out, err = call("run", ".", "--events", "e.jsonl", "--output", "json")
    notices = orjson.loads(out)["stats"]["notices"]
    assert (status, sorted(notices)) == (0, ["exact", "large"])
    assert "amount is a text in 2 of 3 events of the type A, and 100 is a number" in notices["large"][0]
    assert "--columns NAME=number" in notices["large"][0]
    status, out, err = call("run", ".", "--events", "e.jsonl")
    assert "notice: large: line 1, column" in err


def test_a_run_counts_comparisons_in_derived_streams(tmp_path, call):
    (tmp_path / "p.yaml").write_text(COMPARED.replace("RETURN a.amount AS", "RETURN a.note AS"))
    line = {"id": "1", "type": "A", "time": "2026-01-01T00:00:00Z", "key": "k", "data": {"amount": 300, "note": "x"}}
    (tmp_path / "e.jsonl").write_bytes(orjson.dumps(line))
    _, _, err = call("run", ".", "--events", "e.jsonl")
    assert "medium: line 1, column" in err
    assert "amount is a text in 1 of 1 events of the type large" in " ".join(err.split())


def test_the_tests_of_a_project_count_them_together_and_once(tmp_path, call):
    (tmp_path / "p.yaml").write_text(COMPARED)
    cases = [COMPARED_CASE.format(number=n, amount=one) for n, one in enumerate(['"250"', '"7"', "5"])]
    (tmp_path / "case.yaml").write_text("---".join(cases))
    status, _, err = call("test", ".")
    said = " ".join(err.split())
    assert (status, said.count("notice: large: ")) == (0, 1)
    assert "amount is a text in 2 of 3 events of the type A" in said
