"""Cost of a join that keeps a tenth of its rows in memory, compared with the same join with all rows in memory.

    scripts/bench join_spilling [--quick]

Input: events of two streams, a millisecond apart, in entries of 1,000 events of each stream. *running* is the workload
of PJoin, without a window. Events choose their keys uniformly among the active keys. Both streams finish the lowest
active key, and another key becomes active. So each active key is equally likely to be needed next, which is the worst
case for a memory with a tenth of the rows. *returning* is an unbounded join: nine of ten events have recent keys, and
the tenth has a random earlier key.

*memory* is a shard whose join has all rows in memory, *disk* a shard whose join has a tenth. The runs take turns, and
the figures are thread times of the best rounds. If the output rows of both differ in any byte, nothing is printed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.join_running import log_of_records
from benchmarks.rounds import best_of
from shards import KINDS_BY_NAME, ShardState
from shards.kinds.joins import JoinKind, merged_stream
from streams import ControlRecord, Event, LogEntry, OperatorOn, SpilledFiles, StreamDeclaration, StreamOn

_STEP_US, _TAKEN = 1_000, 4
_STREAMS = ("orders", "payments")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A join to measure.

    Attributes:
        name: The name of the case.
        closes: Whether both streams finish keys.
        most: The approximate number of rows stored at a time.
    """

    name: str
    closes: bool
    most: int

    def document(self, rows: int) -> dict[str, Any]:
        """Return the document of the join, with ``rows`` rows in memory."""
        inputs = [
            {"stream": stream, "as": f"i{number}", **({"closed_by": {"type": "Last"}} if self.closes else {})}
            for number, stream in enumerate(_STREAMS)
        ]
        wanted = {"id": "id(i0)", "v": "i1.v", "name": "i1.name"}
        return {"name": "all", "inputs": inputs, "return": wanted, "memory": {"rows": rows, "spill": True}}

    def events(self, count: int) -> list[tuple[int, Event]]:
        """Return the events by time, each with its stream number."""
        chance = np.random.default_rng(7)
        found: list[tuple[int, Event]] = []
        active = self.most // 4  # a key has four rows on average, two of each stream
        for place in range(count):
            number, kind = place % 2, "Part"
            lowest = place // 8
            if self.closes:
                key = lowest + int(chance.integers(0, active))
                if place % 8 >= 6:
                    key, kind = lowest, "Last"
            else:
                newest = place // 4 + 1
                lately = max(newest - 200, 0)
                key = int(chance.integers(0, newest) if chance.random() < 0.1 else chance.integers(lately, newest))
            data = {"v": place % 97, "name": f"n{place % 50}", "text": "x" * 60}
            found.append((number, Event(id=f"e{place}", type=kind, time_us=place * _STEP_US, key=f"k{key}", data=data)))
        return found


def log_of_case(case: Case, events: Sequence[tuple[int, Event]], rows: int) -> list[LogEntry]:
    """Return the log of a shard in which the join runs."""
    kind, declared = JoinKind(), {name: StreamDeclaration(name=name) for name in _STREAMS}
    definition = kind.read(case.document(rows), declared.__getitem__)
    derived = [StreamDeclaration(name=name, derived=True) for name in ("all", merged_stream("all"))]
    records: list[tuple[str, ControlRecord]] = [(one.name, StreamOn(one)) for one in [*declared.values(), *derived]]
    parts = kind.parts(definition, declared.__getitem__)
    records += [(one.inputs[0].stream, OperatorOn(replace(one, version=1), "fresh")) for one in (definition, *parts)]
    return log_of_records(records, [(_STREAMS[number], event) for number, event in events])


@dataclass
class Run:
    """Runs of one log.

    Attributes:
        log: The log to run.
        counts: Counts of the join at the end of the last run.
        most: The maximum number of rows stored at a time.
    """

    log: Sequence[LogEntry]
    counts: dict[str, int]
    most: int = 0

    def __call__(self) -> int:
        """Run the log in micro-batches. Return a digest of all rows."""
        digest = blake2b(digest_size=16)
        with tempfile.TemporaryDirectory() as folder:
            kinds = {**KINDS_BY_NAME, "join": JoinKind(files=SpilledFiles(Path(folder)))}
            state = ShardState(0, kinds=kinds)
            for first in range(0, len(self.log), _TAKEN):
                for block in state.advance(self.log[first : first + _TAKEN]):
                    for body in block.found.bodies.to_pylist():
                        digest.update(body)
                measured = state.measures().get(merged_stream("all"), {})
                self.most = max(self.most, measured.get("join_stored") or 0)
            self.counts = {name: number or 0 for name, number in measured.items()}
            self.counts["state_bytes"] = len(state.dump())
        return int.from_bytes(digest.digest())


def main() -> None:
    """Print the ratios of each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few events")
    quick = parser.parse_args().quick
    print(
        "| join | events | rows stored | in memory | memory, events/s | disk, events/s | ratio | written | read back |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    size = 5_000 if quick else 40_000
    for case in (Case(name="running", closes=True, most=size), Case(name="returning", closes=False, most=4 * size)):
        events = case.events(4 * size)
        whole = Run(log_of_case(case, events, 100 * size), {})
        whole()
        rows = whole.most // 10
        runs = {"memory": whole, "disk": Run(log_of_case(case, events, rows), {})}
        found = best_of(runs, 1 if quick else 3)
        if len({timed.result for timed in found.values()}) > 1:
            raise SystemExit(f"{case} finds {found}")
        speeds = {name: len(events) / timed.seconds for name, timed in found.items()}
        counts = runs["disk"].counts
        shown = [
            *(f"{number:,}" for number in (len(events), runs["disk"].most, rows)),
            *(f"{speed:,.0f}" for speed in speeds.values()),
            f"{speeds['memory'] / speeds['disk']:.2f}",
            *(f"{counts[name]:,}" for name in ("join_spill_writes", "join_spill_reads")),
        ]
        print(f"| {case.name} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
