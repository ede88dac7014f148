"""CPU time of one step of a shard by its number of events, which shows the fixed cost of a step.

    scripts/bench step_cost [--rounds=6] [--before=PYTHON]

Input: orders of the whole workload, Q1, Q2 and EP1 with the constraints of the order workflow, appended to a log of
eight shards in requests of 50 to 10,000 events. One shard processes its entries one by one, as in a service with little
traffic. Its state already contains the first half of the entries. *step* is the time to decode and match the events and
to build the rows with their ids, explanations and JSON, without Redis. As in a service, hosts are measured.
*statistics* is the time to report on a step, which a caller needs about once a second. *us an event* is the time of a
step divided by its events, with the ratio to the largest steps of the same run. Milliseconds are thread time, the
median of all rounds.

``--before`` is the interpreter of another checkout that has this file: it runs the same steps, in turn with those of
this one, and the ratio is the median over pairs of rounds. The rows must be equal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.checkouts import Comparison, Processes, Round
from pipeline.sources.log_reading import read_entries
from shards import Metering, OutputRow, ShardState, StoredEntry, rows_of
from streams import log_key

_SHARD = 0
_SIZES = {50: 20_000, 250: 60_000, 1_000: 100_000, 10_000: 200_000}  # events of a request, and of the whole log
_NEWEST_ENDINGS = 1_000


def main() -> None:
    """Measure and print."""
    comparison = Comparison(
        module="benchmarks.step_cost",
        sizes=_SIZES,
        lines=_lines,
        answer=lambda folder: _Steps(folder).run,
        report=_report,
    )
    comparison.run(__doc__, rounds=6)


def _lines(server: Any) -> Iterator[list[str]]:
    """Yield a line for each entry of one shard. Bodies are written in hexadecimal digits."""
    last = server.xinfo_stream(log_key(_SHARD))["last-generated-id"].decode()
    for page in read_entries(server, _SHARD, "0-0", last):
        yield from ([one.position, one.kind, one.stream, one.route, one.body.hex()] for one in page)


class _Steps:
    """The steps of a shard after the first half of its entries."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready: dict[int, tuple[bytes, Sequence[StoredEntry], int]] = {}

    def run(self, request: int) -> Round:
        """Process the second half of the entries one by one, and return the times."""
        body, entries, events = self._begun(request)
        state = ShardState.load(body)
        state.limit_endings(_NEWEST_ENDINGS)
        state.meter(Metering(time.thread_time_ns))
        step_s = statistics_s = 0.0
        rows: list[OutputRow] = []
        for entry in entries:
            begun = time.thread_time()
            rows += rows_of(state.advance([entry]))
            matched = time.thread_time()
            state.promises(), state.observations(), state.measures()
            step_s, statistics_s = step_s + matched - begun, statistics_s + time.thread_time() - matched
        digest = sha256(b"".join(row.id.encode() + row.body for row in rows)).hexdigest()
        return {
            "events": events / len(entries),
            "rows": len(rows) / len(entries),
            "step_ms": 1_000 * step_s / len(entries),
            "statistics_ms": 1_000 * statistics_s / len(entries),
            "digest": digest,
        }

    def _begun(self, request: int) -> tuple[bytes, Sequence[StoredEntry], int]:
        """Return the saved state after the first half of the entries, the other entries, and their number of events."""
        if request not in self._ready:
            lines = map(orjson.loads, (self._folder / f"{request}.json").read_bytes().splitlines())
            entries = [
                StoredEntry(position=position, kind=kind, stream=stream, route=route, body=bytes.fromhex(body))
                for position, kind, stream, route, body in lines
            ]
            control = [entry for entry in entries if entry.kind != "events"]
            batches = [entry for entry in entries if entry.kind == "events"]
            half = len(batches) // 2
            state = ShardState(_SHARD)
            state.advance(control)
            for entry in batches[:half]:
                state.advance([entry])
            before = _events(state)
            body = state.dump()
            state.advance(batches[half:])
            self._ready[request] = body, batches[half:], _events(state) - before
        return self._ready[request]


def _events(state: ShardState) -> int:
    return sum(measured["events"] or 0 for measured in state.measures().values())


def _report(processes: Processes, rounds: int) -> None:
    found = {request: processes.rounds(rounds, request) for request in _SIZES}
    large = _median(found[max(_SIZES)]["after"], "step_ms") / found[max(_SIZES)]["after"][0]["events"]
    for request, by_name in found.items():
        _print(request, by_name, large)


def _median(rounds: Sequence[Round], name: str) -> float:
    return float(median(one[name] for one in rounds))


def _print(request: int, by_name: Mapping[str, Sequence[Round]], large: float) -> None:
    after = by_name["after"]
    if len({one["digest"] for rounds in by_name.values() for one in rounds}) > 1:
        raise SystemExit("the rows differ")
    step_ms, events = _median(after, "step_ms"), after[0]["events"]
    line = (
        f"request {request:6,d}: {events:7,.1f} events and {after[0]['rows']:6,.1f} rows a step; "
        f"step {step_ms:6.2f} ms, statistics {_median(after, 'statistics_ms'):.2f} ms; "
        f"{1_000 * step_ms / events:6.1f} us an event, {step_ms / events / large:5.1f} times that of large steps"
    )
    if "before" in by_name:
        ratio = median(new["step_ms"] / old["step_ms"] for old, new in zip(by_name["before"], after, strict=True))
        line += f"; before {_median(by_name['before'], 'step_ms'):6.2f} ms, ratio {ratio:.2f}"
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
