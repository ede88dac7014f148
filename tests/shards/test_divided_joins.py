"""Division of a shard in which joins run: each count continues in one part only, and all other state stays."""

from collections import Counter
from typing import Any

import numpy as np
import orjson
import pytest

from joins import FIGURE
from shards import InlineShards, RowBlock, ShardState
from streams import ClosedKeys, Event, EventBatch, KeysClosed
from tests.builders.shards import saved_measures
from tests.shards.test_joins import started

INPUTS = [
    {"stream": "orders", "as": "o", "window": "20 us", "closed_by": "unique"},
    {"stream": "payments", "as": "p", "key": "data.order", "window": "20 us"},
]
JOIN: dict[str, Any] = {"name": "pairs", "inputs": INPUTS, "outer": ["p"], "return": {"o": "id(o)", "p": "id(p)"}}
OPEN: dict[str, Any] = {**JOIN, "inputs": [{"stream": "orders", "as": "o"}, {"stream": "payments", "as": "p"}]}
HANDED_ON = "join-input_handed_on"
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "by another key": (JOIN, ("results", "absent", "expired", "without_key", "violations", "lookups")),
    "limits": (
        {**OPEN, "window": "90 us", "results": {"per_event": 2, "average": 1}},
        ("results", "results_ahead", "results_cut"),
    ),
    "condition": ({**OPEN, "window": "90 us", "where": "o.n < p.n"}, ("results", "contradicting")),
    "disk": ({**OPEN, "memory": {"rows": 2, "spill": True}}, ("results", "spill_writes", "spill_reads")),
    "keys that rise": ({**OPEN, "wait": "auto"}, ("results", "violations", "purged")),
}


def fed(run: InlineShards, numbers: range) -> list[RowBlock]:
    rows: list[RowBlock] = []
    for number in numbers:
        key = str(number % 5) if number % 7 else "none"
        data = {"n": number % 3, "order": key if number % 7 else None}
        for stream in ("orders", "payments"):
            event = Event(id=f"{stream[0]}{number}", type="T", time_us=2 * number, key=key, data=data)
            run.feed(stream, EventBatch.from_events([event]))
        if number == 20:
            closed = (ClosedKeys(input=alias, to=1, time_us=40) for alias in "op")
            run.append_record("pairs.inputs", KeysClosed(tuple(closed)))
        rows += run.settle()
    return rows


def sums(states: list[ShardState]) -> dict[str, Counter[str]]:
    """Sums of the shards' measures, by stream; the times of the shards are left out."""
    found: dict[str, Counter[str]] = {}
    for state in states:
        for name, measured in saved_measures(state).items():
            numbers = {part: number for part, number in measured.items() if part != "watermark_us"}
            found.setdefault(name, Counter()).update(numbers)
    return found


def figures(states: list[ShardState], *endings: str) -> Counter[str]:
    """Sums of the join's figures whose names have these endings."""
    measured = [state.measures()["pairs.inputs"].items() for state in states]
    return sum(
        (Counter({name: number or 0 for name, number in some if name.endswith(endings)}) for some in measured),
        Counter(),
    )


@pytest.mark.parametrize("case", CASES)
def test_each_count_continues_in_one_part(case: str) -> None:
    document, counted = CASES[case]
    run = started(1, document)
    fed(run, range(1, 40))
    whole = ShardState.load(run.states[0].dump())
    measured = whole.measures()["pairs.inputs"]
    assert all(measured[f"join_{name}"] for name in counted)
    parts = list(run.states[0].split(1, 3))
    assert sums(parts) == sums([whole])
    for ending in (f"{FIGURE}arrived", f"{FIGURE}late", f"{FIGURE}without_key"):
        assert figures(parts, ending) == figures([whole], ending)
    assert sum(sums(parts)["orders"].values()) > 0


@pytest.mark.parametrize("case", CASES)
def test_a_join_without_its_counts_goes_on_in_the_same_way(case: str) -> None:
    document, _ = CASES[case]
    whole, other = started(1, document), started(1, document)
    assert bodies(fed(whole, range(1, 40))) == bodies(fed(other, range(1, 40)))
    before = sums(whole.states)
    for place in other.states[0]._places.values():
        place.keep(lambda keys: np.ones(len(keys), np.bool_), has_counts=False)
    other.states = [ShardState.load(other.states[0].dump())]
    after = fed(whole, range(40, 60)) + whole.finish()
    assert bodies(after) == bodies(fed(other, range(40, 60)) + other.finish())
    counts = sums(other.states)
    for stream, name in (("pairs.inputs", "join_events"), ("pairs.inputs", "join_results"), ("orders", HANDED_ON)):
        assert sums(whole.states)[stream][name] == before[stream][name] + counts[stream][name]


def bodies(rows: list[RowBlock]) -> list[dict[str, Any]]:
    return [orjson.loads(row.body) for block in rows for row in block]
