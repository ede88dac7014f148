"""Each kind of process is killed at a random moment, while all kinds of results are on their way.

The long forms are ``benchmarks/pipeline_chaos.py``, ``derived_chaos.py``, ``join_chaos.py`` and ``aggregate_chaos.py``;
here they share one service and its kills.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from benchmarks import aggregate_chaos
from benchmarks.chaos_together import all_cases
from benchmarks.join_chaos import DERIVED, WEBHOOKS
from benchmarks.pipeline_chaos import SETTINGS, VICTIMS, Orders, Plan, disturbed
from service.processes.temporary import TemporaryService, running
from tests.builders.service import receiving

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporaryService]:
    with running(tmp_path_factory.mktemp("service"), more=SETTINGS) as found:
        yield found


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=pytest.mark.deep)])
def test_killed_workers_do_not_restart_the_pipeline(service: TemporaryService, kills: int) -> None:
    plan = Plan(events=2_000 * kills, kills=kills, pause_s=1.0, kinds=["worker"])
    outcome = disturbed(service, plan, case=Orders(f"workers-{kills}", mark=f"w{kills}"))
    assert outcome.faults == []
    assert outcome.killed == {"worker": kills}
    assert outcome.starts["pipeline"] == 1
    assert len(outcome.expected) > 50 * kills


def test_random_kills_lose_nothing_and_tell_nothing_twice(service: TemporaryService, tmp_path: Path) -> None:
    """Alerts, early terminations, a chain over two keys, joins, their webhooks, aggregates, answers to questions."""
    with receiving() as receiver:
        cases = all_cases(tmp_path, receiver)
        outcome = disturbed(service, Plan(events=20_000, kills=len(VICTIMS), pause_s=1.0), case=cases)
        counted = {one["id"]: one["data"] for one in service.client.pages("/derived-events") if one["into"] == "sold"}
    assert outcome.faults == []
    assert outcome.killed == dict.fromkeys(VICTIMS, 1)
    orders, chain, joins, aggregates = cases.outcomes.values()
    assert len(orders.expected) > 300
    assert len(orders.expected_endings) > 1_000  # more than a page
    assert len(chain.expected) > 2_000
    joined = Counter(text.split()[0] for text in joins.others[DERIVED][1])
    assert all(joined[stream] > 200 for stream in ("paid", "delivered", "totals", "sold", "customers"))
    assert len(joins.expected) > 500
    assert len(joins.others[WEBHOOKS][0]) == joined["sold"]
    reported = Counter(text.split()[0] for text in aggregates.others[aggregate_chaos.DERIVED][1])
    assert all(reported[name] > 20 for name in ("failed_logins", "refunds", "tickets_per_region"))
    assert len(aggregates.others[aggregate_chaos.ANSWERS][1]) >= len(VICTIMS)
    sent = {body["id"]: body["data"] for body in map(orjson.loads, receiver.bodies)}
    assert sent == counted
