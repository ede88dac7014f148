"""The CPU time of one step of a shard, by the number of events in it: how much of it is fixed.

    scripts/bench step_cost [--rounds=6] [--before=PYTHON]

Input: orders of the whole workload, Q1, Q2 and EP1 with the constraints of the order workflow, appended to a log of
eight shards in requests of 50 to 10,000 events. One shard takes its entries one by one, as a service with little
traffic does; its state has seen the first half of them. *step* is decoding, matching and the rows with their ids,
words and JSON, without Redis; hosts are measured, as in a service. *statistics* is the report on a step, which a caller
needs about once a second. *us an event* is the step divided by its events, with its ratio to that of the largest steps
of the same run. Milliseconds are thread time, the median of all rounds.

``--before`` is the interpreter of another checkout that has this file: it runs the same steps, in turn with those of
this one, and the ratio is the median over pairs of rounds. The rows must be equal.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from benchmarks.filled_log import filled_log, order_batches
from pipeline import EventLogOptions
from pipeline.sources.log_reading import connect, read_entries
from shards import Metering, OutputRow, ShardState, StoredEntry, rows_of
from streams import log_key

_SHARDS, _SHARD = 8, 0
_SIZES = {50: 20_000, 250: 60_000, 1_000: 100_000, 10_000: 200_000}  # events of a request, and of the whole log
_NEWEST_ENDINGS = 1_000

Round = Mapping[str, Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--before", default="", help="Python of another checkout")
    parser.add_argument("--answer", default="", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.answer:
        _answer(Path(wanted.answer))
        return
    with TemporaryDirectory() as folder:
        for request, events in _SIZES.items():
            _write(Path(folder) / f"{request}.json", Path(folder) / f"log-{request}", request, events)
        _report(Path(folder), wanted.rounds, wanted.before)


def _write(file: Path, folder: Path, request: int, events: int) -> None:
    """Write the entries of one shard of a filled log as JSON lines; bodies are in hexadecimal digits."""
    folder.mkdir()
    with filled_log(folder, order_batches(events, request=request), shards=_SHARDS) as log:
        server = connect(EventLogOptions(redis_url=log.url, shards=_SHARDS))
        last = server.xinfo_stream(log_key(_SHARD))["last-generated-id"].decode()
        entries = [entry for page in read_entries(server, _SHARD, "0-0", last) for entry in page]
        server.close()
    lines = [[one.position, one.kind, one.stream, one.route, one.body.hex()] for one in entries]
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))


def _answer(folder: Path) -> None:
    """Run a round for each request size that comes as a line of the input."""
    steps = _Steps(folder)
    for line in sys.stdin:
        sys.stdout.write(orjson.dumps(steps.run(int(line))).decode() + "\n")
        sys.stdout.flush()


class _Steps:
    """The steps of a shard after the first half of its entries."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready: dict[int, tuple[bytes, Sequence[StoredEntry], int]] = {}

    def run(self, request: int) -> Round:
        """Take the second half of the entries one by one."""
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
        """The saved state after the first half of the entries, the entries of the second half, and their events."""
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


def _report(folder: Path, rounds: int, before: str) -> None:
    pythons = {"before": before, "after": sys.executable} if before else {"after": sys.executable}
    processes = {name: _process(python, folder) for name, python in pythons.items()}
    found: dict[int, dict[str, list[Round]]] = {request: {name: [] for name in pythons} for request in _SIZES}
    for request in _SIZES:
        for _ in range(rounds):
            for name, process in processes.items():
                found[request][name].append(_asked(process, request))
    for process in processes.values():
        process.communicate()
    large = _median(found[max(_SIZES)]["after"], "step_ms") / found[max(_SIZES)]["after"][0]["events"]
    for request, by_name in found.items():
        _print(request, by_name, large)


def _process(python: str, folder: Path) -> subprocess.Popen[str]:
    """A process of a checkout that answers with rounds; its packages are those of the checkout."""
    root = Path(python).absolute().parents[2]
    return subprocess.Popen(
        [python, "-m", "benchmarks.step_cost", f"--answer={folder}"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(process: subprocess.Popen[str], request: int) -> Round:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    process.stdin.write(f"{request}\n")
    process.stdin.flush()
    found: Round = orjson.loads(process.stdout.readline())
    return found


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
