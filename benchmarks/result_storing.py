"""Cost per result of the sink, in the single thread of Redis and in the sink's own process.

    scripts/bench result_storing [--rounds=5] [--before=PYTHON]

Input: the results of orders of the whole workload, Q1, Q2 and EP1 with the constraints of the order workflow, from a
log of eight shards, as blocks of the continuous runtime: alerts, early terminations, and counts of further ones. A
batch has one block of each shard. *request* is the number of events of one request, which is the size of a step. The
sink writes the batches to a private server that syncs its file each second. *Redis* is the CPU time of the server per
result. *sink* is the thread time per result for reading the blocks and running the sink. In *full* runs, the store
already has the maximum number of alerts, so each new alert removes an old one.

``--before`` is the interpreter of another checkout that has this file: it writes the same blocks, in turn with this
one, and the ratios are medians over pairs of rounds. Both must list the same alerts and have the same counters.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from benchmarks.checkouts import SHARDS, Comparison, Processes, Round
from pipeline.continuous.blocks import Block, to_bytes
from pipeline.sources.log_reading import read_entries
from service.delivery.sink import AlertSink
from service.runtime import Stores
from service.stores import connect
from shards import RowBlock, ShardState
from streams import SystemClock, log_key
from tests.builders.service import private_server, settings_for

_SIZES = {250: 20_000, 10_000: 200_000}  # events of a request, and of the whole log
_NEWEST_ENDINGS = 1_000
_KEPT = 2_000  # alerts in a full store
_MICRO = 1_000_000


def main() -> None:
    """Measure and print."""
    comparison = Comparison(
        module="benchmarks.result_storing", sizes=_SIZES, lines=_lines, answer=_rounds, report=_report
    )
    comparison.run(__doc__, rounds=5)


def _lines(server: Any) -> Iterator[list[str]]:
    """Yield a line for each batch: the blocks of all shards, in hexadecimal digits."""
    steps = [list(_steps(server, shard)) for shard in range(SHARDS)]
    return ([to_bytes(rows).hex() for rows in batch] for batch in zip(*steps, strict=False))


def _steps(server: Any, shard: int) -> Iterator[Sequence[RowBlock]]:
    """Yield the results of a shard, entry by entry."""
    last = server.xinfo_stream(log_key(shard))["last-generated-id"].decode()
    state = ShardState(shard)
    state.limit_endings(_NEWEST_ENDINGS)
    for page in read_entries(server, shard, "0-0", last):
        for entry in page:
            rows = state.advance([entry])
            if entry.kind == "events":
                yield rows


def _rounds(folder: Path) -> Callable[[int, int], Round]:
    """Return a function that runs a round, given the request size and the maximum number of alerts."""

    def run(request: int, kept: int) -> Round:
        with TemporaryDirectory() as place:
            return _round(folder / f"{request}.json", Path(place), kept)

    return run


def _round(file: Path, place: Path, kept: int) -> Round:
    batches = [
        [Block(shard=shard, after="0-0", position="1-0", rows=bytes.fromhex(rows)) for shard, rows in enumerate(line)]
        for line in map(orjson.loads, file.read_bytes().splitlines())
    ]
    with private_server(place) as url, connect(url) as client:
        stores = Stores(client, url, settings_for(url, limits={"alerts_kept": kept}))
        sink = AlertSink(stores, SystemClock())
        client.ping()
        results, redis_s, begun = 0, _cpu_s(client), time.thread_time()
        for number, blocks in enumerate(batches):
            rows = [row for block in blocks for row in block.to_rows()]
            sink(rows, number)
            results += len(rows)
        sink_s, redis_s = time.thread_time() - begun, _cpu_s(client) - redis_s
        stored = {"alerts": _alerts(stores), "counts": _counts(stores), "memory": client.info("memory")["used_memory"]}
    digests = {name: sha256(orjson.dumps(stored[name])).hexdigest() for name in ("alerts", "counts")}
    return {
        "results": results,
        "batches": len(batches),
        "redis_us": _MICRO * redis_s / results,
        "sink_us": _MICRO * sink_s / results,
        "memory": stored["memory"] / results,
        **digests,
    }


def _alerts(stores: Any) -> list[str]:
    """Return the sorted ids of all alerts in the store, because the order within a batch is not compared.

    If there are at most ``2 * _KEPT`` alerts, as in a full store, return none.
    """
    found, after = [], "0"
    while page := (read := stores.alerts.page(after=after, limit=1_000)).items:
        found += [alert["id"] for alert in page]
        after = read.after
    return sorted(found) if len(found) > 2 * _KEPT else []


def _counts(stores: Any) -> list[Any]:
    alerts = [[*name, count] for name, count in sorted(stores.alerts.counts().items())]
    return [alerts, stores.results["ending"].counts()]


def _cpu_s(client: Any) -> float:
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user_main_thread"]) + float(cpu["used_cpu_sys_main_thread"])


def _report(processes: Processes, rounds: int) -> None:
    for request in _SIZES:
        for kept in (0, _KEPT):
            _print(request, kept, processes.rounds(rounds, request, kept))


def _print(request: int, kept: int, found: Mapping[str, Sequence[Round]]) -> None:
    if any(len({one[name] for one in _all(found)}) > 1 for name in ("alerts", "counts")):
        raise SystemExit("the stores differ")
    first = found["after"][0]
    size = first["results"] / first["batches"]
    line = f"request {request:6,d}{', full' if kept else '':6s}: {first['results']:6,d} results, {size:7,.1f} a batch"
    for name, unit in (("redis_us", "us of Redis"), ("sink_us", "us of the sink"), ("memory", "B of memory")):
        now = median(one[name] for one in found["after"])
        line += f"; {now:6.2f} {unit}"
        if "before" in found:
            pairs = zip(found["before"], found["after"], strict=True)
            ratio = median(old[name] / new[name] for old, new in pairs)
            line += f", before {median(one[name] for one in found['before']):6.2f} ({ratio:.1f} times)"
    sys.stdout.write(line + "\n")


def _all(found: Mapping[str, Sequence[Round]]) -> Iterable[Round]:
    return (one for rounds in found.values() for one in rounds)


if __name__ == "__main__":
    main()
