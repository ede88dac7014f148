"""The whole service: stopped, divided into more shards by the command, and started again in the midst of traces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from service import Stores
from service.processes.temporary import running
from service.sending import send_events
from service.settings import Settings
from service.stores import connect
from streams import PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import event, log_of, run_inline
from tests.builders.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]

KEYS = 40
STREAM = StreamDeclaration(name="orders", key="data.id", end_events=("End",), keys={"customer": "data.customer"})
PATTERNS = [
    PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u [v > a.v])"),
    PatternOn(name="never", version=1, text="PATTERN never EVENT SEQ(A a, NOT X) WITHIN 60 s"),
    PatternOn(name="both", version=1, text="PATTERN both EVENT SEQ(A a, U u, X x) WHERE [customer]", route="customer"),
]


def batches():
    """Five rounds: an A, another A, a U, an X for every other key, and an End for every key."""
    number, found = 0, []
    for round_, event_type in enumerate(("A", "A", "U", "X", "End")):
        batch = []
        for key in range(0, KEYS, 2 if event_type == "X" else 1):
            number += 1
            batch.append(event(number, event_type, f"k{key}", id=f"k{key}", customer=f"c{key % 9}", v=round_))
        found.append(batch)
    return found


def forestall(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FORESTALL_DATA_DIR": str(folder)}
    command = [sys.executable, "-P", "-c", "from service.cli import main; main()", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def send(service, parts, first):
    for number, batch in enumerate(parts, start=first):
        assert send_events(service.client, "orders", batch, f"batch-{number}")["rejected"] == []


def ids(service):
    return sorted(alert["id"] for alert in service.client.pages("/alerts"))


@pytest.mark.deep  # each day in parts by tests/service/test_resharding.py
@pytest.mark.parametrize(("runtime", "checkpoints"), [("continuous", []), ("micro-batch", ["checkpoint-4"])])
def test_a_service_that_was_stopped_goes_on_with_more_shards(tmp_path: Path, monkeypatch, runtime, checkpoints) -> None:
    monkeypatch.setenv("FORESTALL_SHARDS", "2")
    monkeypatch.setenv("FORESTALL_RUNTIME", runtime)
    folder, parts = tmp_path / "data", batches()
    rows = run_inline(log_of([StreamOn(STREAM), *PATTERNS, *parts]))
    expected = sorted(row.id for row in rows if row.kind == "alert")
    assert len(expected) > 2 * KEYS
    with running(folder) as service:
        declared = {"name": "orders", "key": STREAM.key, "keys": dict(STREAM.keys), "end_events": ["End"]}
        service.client.post("/streams", declared)
        for pattern in PATTERNS:
            service.client.post("/patterns", {"stream": "orders", "text": pattern.text})
        send(service, parts[:3], 0)
        refused = forestall(folder, "reshard", "--shards", "4")
        assert (refused.returncode, "is in use by another forestall process" in refused.stderr) == (2, True)
    refused = forestall(folder, "reshard", "--shards", "3")
    assert (refused.returncode, "possible are 4, 6, 8, 10" in refused.stderr) == (2, True), refused.stderr
    done = forestall(folder, "reshard", "--shards", "4")
    assert (done.returncode, "the log has 4 shards" in done.stderr) == (0, True), done.stderr
    assert sorted(path.name for path in folder.glob("checkpoint*")) == []
    with running(folder) as service:
        send(service, parts[3:], 3)
        until(lambda: len(ids(service)) >= len(expected), "the alerts", service)
        assert ids(service) == expected
        assert until(lambda: service.client.get("/pipeline").get("shard_count"), "the driver", service) == 4
        assert list(service.client.pages("/dead-letters")) == []
        url = service.supervisor.redis_url
        with connect(url) as client:
            log = Stores(client, url, Settings(redis_url=url)).log
            assert (log.shards(), log.layout.read().former) == (4, (2,))
            assert all(list(log.read_range(shard)) for shard in range(4))
    assert [path.name for path in folder.glob("checkpoint*")] == checkpoints
