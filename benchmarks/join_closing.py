"""Rows retained by a join, and times of reported absences, if keys are closed by the trace's end or by the workflow.

The events are generated orders, some of them cancelled. Each stock check is joined with the withdrawal from remote
stock, and a missing withdrawal is reported. There is one shard, with entries of 500 events. The rows that the join
retains are counted after each entry.

    scripts/bench join_closing --orders=2000
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

import orjson

from benchmarks.workload import order_constraints, orders
from constraints import ConstraintSet, to_document
from shards import InlineShards, RowBlock
from shards.kinds.joins import JoinKind
from streams import (
    ConstraintsOn,
    ControlRecord,
    Event,
    EventBatch,
    OperatorOn,
    StreamDeclaration,
    StreamOn,
    format_time,
    parse_time,
)
from workflows import OrderSettings

_STREAM, _JOIN = "orders", "remote"
_ENTRY = 500
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The results of one way to close keys.

    Attributes:
        closed_by: The way to close keys.
        most: The maximum number of retained rows, over all entries.
        mean: The mean number of retained rows.
        absent: The time at which each absence was reported, in microseconds, by stock check.
        pairs: The joined pairs.
        seconds: The total time.
    """

    closed_by: str
    most: int
    mean: float
    absent: dict[str, int]
    pairs: set[tuple[str, str]]
    seconds: float


def outcome(closed_by: str, events: list[Event], constraint_set: ConstraintSet) -> Outcome:
    """Join all events, with inputs whose keys are closed in the given way."""
    shards = InlineShards(1)
    for stream, record in _records(closed_by, constraint_set):
        shards.append_record(stream, record)
    shards.settle()
    held: list[int] = []
    blocks: list[RowBlock] = []
    begun = time.perf_counter()
    for start in range(0, len(events), _ENTRY):
        shards.feed(_STREAM, EventBatch.from_events(events[start : start + _ENTRY]))
        blocks += shards.settle()
        held.append(shards.states[0].measures()[f"{_JOIN}.inputs"]["join_stored"] or 0)
    blocks += shards.finish()
    seconds = time.perf_counter() - begun
    absent, pairs = _told(blocks)
    return Outcome(closed_by=closed_by, most=max(held), mean=fmean(held), absent=absent, pairs=pairs, seconds=seconds)


def _records(closed_by: str, constraint_set: ConstraintSet) -> Iterable[tuple[str, ControlRecord]]:
    declaration = StreamDeclaration(name=_STREAM, end_events=tuple(sorted(constraint_set.end_events)))
    yield _STREAM, StreamOn(declaration)
    yield _STREAM, ConstraintsOn(name=_STREAM, version=1, document=to_document(constraint_set))
    for name in (f"{_JOIN}.inputs", _JOIN):
        yield name, StreamOn(StreamDeclaration(name=name, derived=True))
    kind = JoinKind()
    inputs = [("c", "CheckInventory"), ("u", "UseRemoteStock")]
    body = {
        "name": _JOIN,
        "inputs": [{"stream": _STREAM, "as": alias, "type": name, "closed_by": closed_by} for alias, name in inputs],
        "outer": ["u"],
        "return": {"check": "id(c)", "use": "id(u)"},
    }
    join = kind.read(body, lambda _: declaration)
    for one in (join, *kind.parts(join, lambda _: declaration)):
        yield one.inputs[0].stream, OperatorOn(replace(one, version=1))


def _told(blocks: Iterable[RowBlock]) -> tuple[dict[str, int], set[tuple[str, str]]]:
    absent: dict[str, int] = {}
    pairs: set[tuple[str, str]] = set()
    for row in (row for block in blocks for row in block):
        body = orjson.loads(row.body)
        if row.kind != "derived":
            if row.kind == "dead-letter":
                raise SystemExit(f"unexpected: {body['reason']}")
            continue
        said = body["data"]
        if said["use"] is None:
            absent[said["check"]] = parse_time(body["time"])
        else:
            pairs.add((said["check"], said["use"]))
    return absent, pairs


def main() -> None:
    """Print a table.

    Raises:
        SystemExit: Different ways to close keys lead to different pairs or absences.
    """
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000)
    wanted = parser.parse_args()
    events = orders(wanted.orders, settings=OrderSettings(cancel=0.3))
    constraint_set = order_constraints()
    plain, early = (outcome(closed_by, events, constraint_set) for closed_by in ("end", "workflow"))
    if (plain.pairs, plain.absent.keys()) != (early.pairs, early.absent.keys()):
        raise SystemExit("the two ways of closing have different results")
    print(f"{len(events):,} events, {len(plain.pairs):,} pairs, {len(plain.absent):,} without a partner")
    print("| closed_by | rows held, mean | most | seconds |\n|---|---|---|---|")
    for one in (plain, early):
        print(f"| `{one.closed_by}` | {one.mean:,.0f} | {one.most:,} | {one.seconds:.1f} |")
    earlier = [plain.absent[check] - early.absent[check] for check in plain.absent]
    share = sum(gain > 0 for gain in earlier) / max(len(earlier), 1)
    mean_s = fmean(earlier) / _SECOND_US if earlier else 0.0
    print(f"absences are reported {mean_s:,.0f} s earlier on average, {share:.0%} of them earlier at all")
    print(f"from {format_time(events[0].time_us)} to {format_time(events[-1].time_us)}")


if __name__ == "__main__":
    main()
