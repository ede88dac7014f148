"""What a shard saves of a join: nothing once all keys are finished, and no more than was declared for ever."""

from collections.abc import Sequence
from typing import Any

import pytest

from shards import InlineShards
from shards.blob import unpack
from shards.kinds.joins import merged_stream
from streams import Event, EventBatch, Tick
from tests.shards.test_joins import started

ROUND, ROUNDS = 40, 12
TEXT = "x" * 100
CLOSED: dict[str, Any] = {
    "inputs": [
        {"stream": "orders", "as": "o", "closed_by": {"type": "Last"}},
        {"stream": "payments", "as": "p", "closed_by": {"type": "Last"}},
    ],
}
OPEN: dict[str, Any] = {"inputs": [{"stream": "orders", "as": "o"}, {"stream": "payments", "as": "p"}]}
JOINS = {
    "windows": {**OPEN, "window": f"{ROUND} us"},
    "closings": CLOSED,
    "both": {**CLOSED, "window": f"{ROUND} us"},
    "totals": {**CLOSED, "emit": "on_close", "outer": ["p"]},
    "memory": {**OPEN, "memory": {"rows": ROUND, "spill": True}},
    "absent": {
        "inputs": [*CLOSED["inputs"], {"stream": "payments", "as": "q", "closed_by": {"type": "Last"}}],
        "outer": ["p", "q"],
        "window": f"{ROUND} us",
    },
    "memory and closings": {**CLOSED, "memory": {"rows": 4, "spill": True}},
}


def begun(case: str) -> InlineShards:
    document = JOINS[case]
    returns = {"n": "count(p)"} if document.get("emit") == "on_close" else {"o": "o.text", "p": "p.text"}
    run: InlineShards = started(1, {"name": "pairs", "return": returns, **document})
    return run


def bytes_of_join(run: InlineShards) -> int:
    """Bytes that are saved of the join."""
    _, _, sections = unpack(run.states[0].dump())
    return sum(len(body) for name, body in sections.items() if name.split("/")[1] == "join")


def feed(run: InlineShards, number: int) -> None:
    """A round: four events of each of ten keys in both streams, which are other keys in each round."""
    fed(run, "T", [(number * ROUND + place, f"k{number}of{place // 4}") for place in range(ROUND)], TEXT)


def finish_keys(run: InlineShards, number: int, time_us: int) -> None:
    """The last events of the keys of a round."""
    fed(run, "Last", [(time_us, f"k{number}of{place}") for place in range(ROUND // 4)], "")


def fed(run: InlineShards, kind: str, rows: Sequence[tuple[int, str]], text: str) -> None:
    for stream in ("orders", "payments"):
        events = [
            Event(id=f"{stream}{key}at{time_us}", type=kind, time_us=time_us, key=key, data={"text": text})
            for time_us, key in rows
        ]
        run.feed(stream, EventBatch.from_events(events))
    run.settle()


def pass_time(run: InlineShards, time_us: int) -> None:
    for stream in ("orders", "payments"):
        run.append_record(stream, Tick(time_us=time_us, cause="events"))
    run.settle()


@pytest.mark.parametrize("case", ["windows", "closings", "both", "totals", "absent", "memory and closings"])
def test_nothing_is_saved_of_keys_that_are_over(case: str) -> None:
    run = begun(case)
    empty = bytes_of_join(run)
    for number in range(3):
        feed(run, number)
    assert bytes_of_join(run) > empty + 4 * len(TEXT)
    for number in range(3):
        finish_keys(run, number, 1_000)
    for time_us in (10_000, 10_001):  # what is on disk is forgotten when time comes further
        pass_time(run, time_us)
    assert bytes_of_join(run) == empty
    assert measured(run, "stored") == measured(run, "keys") == 0


@pytest.mark.parametrize("case", ["windows", "closings", "both", "totals", "absent", "memory and closings"])
def test_what_is_saved_stays_as_small_as_was_declared(case: str) -> None:
    run, sizes = begun(case), []
    for number in range(ROUNDS):
        feed(run, number)
        if case != "windows":
            finish_keys(run, number, (number + 1) * ROUND)
        sizes.append(bytes_of_join(run))
    assert max(sizes[4:]) <= 1.1 * max(sizes[:4])


def test_what_is_saved_with_a_bounded_memory_grows_by_the_index_of_keys_only() -> None:
    run, sizes = begun("memory"), []
    for number in range(ROUNDS):
        feed(run, number)
        sizes.append(bytes_of_join(run))
        assert measured(run, "stored") - measured(run, "spilled") <= ROUND
    keys = (ROUNDS - 4) * ROUND // 4
    assert max(sizes) - max(sizes[:4]) <= 64 * keys
    assert measured(run, "spilled_bytes") > ROUNDS * ROUND * len(TEXT)
    pass_time(run, 10_000)
    assert measured(run, "results") == ROUNDS * ROUND * 4


def measured(run: InlineShards, name: str) -> int:
    return run.states[0].measures()[merged_stream("pairs")][f"join_{name}"] or 0
