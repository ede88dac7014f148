"""What the sink costs the one thread of Redis, and its own process, by result.

    scripts/bench result_storing [--rounds=5] [--before=PYTHON]

Input: the results of orders of the whole workload, Q1, Q2 and EP1 with the constraints of the order workflow, from a
log of eight shards, as blocks of the continuous runtime: alerts, early terminations, and counts of further ones. A
batch has one block of each shard; *request* is the number of events that one request had, so the size of a step. The
sink writes the batches to a private server that syncs its file each second. *Redis* is the CPU of the server by
result, *sink* the thread time of reading the blocks and of the sink. In runs that are *full*, the store has reached the
number of alerts that it keeps, so each alert removes one.

``--before`` is the interpreter of another checkout that has this file: it writes the same blocks, in turn with this
one, and the ratios are medians over pairs of rounds. Both must list the same alerts and have the same counters.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from benchmarks.filled_log import filled_log, order_batches
from pipeline import EventLogOptions
from pipeline.continuous.blocks import Block, to_bytes
from pipeline.sources.log_reading import connect as connect_to_log
from pipeline.sources.log_reading import read_entries
from service.delivery.sink import AlertSink
from service.runtime import build_stores
from service.stores import connect
from shards import RowBlock, ShardState
from streams import SystemClock, log_key
from tests.builders.service import private_server, settings_for

_SHARDS = 8
_SIZES = {250: 20_000, 10_000: 200_000}  # events of a request, and of the whole log
_NEWEST_ENDINGS = 1_000
_KEPT = 2_000  # alerts of a full store
_MICRO = 1_000_000

Round = Mapping[str, Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
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
    """Write the blocks of all shards as lines of JSON, one line a batch; blocks are in hexadecimal digits."""
    folder.mkdir()
    with filled_log(folder, order_batches(events, request=request), shards=_SHARDS) as log:
        server = connect_to_log(EventLogOptions(redis_url=log.url, shards=_SHARDS))
        steps = [list(_steps(server, shard)) for shard in range(_SHARDS)]
        server.close()
    lines = [[to_bytes(rows).hex() for rows in batch] for batch in zip(*steps, strict=False)]
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))


def _steps(server: Any, shard: int) -> Iterator[Sequence[RowBlock]]:
    """The results of a shard, entry by entry."""
    last = server.xinfo_stream(log_key(shard))["last-generated-id"].decode()
    state = ShardState(shard)
    state.limit_endings(_NEWEST_ENDINGS)
    for page in read_entries(server, shard, "0-0", last):
        for entry in page:
            rows = state.advance([entry])
            if entry.kind == "events":
                yield rows


def _answer(folder: Path) -> None:
    """Run a round for each line of the input: the request size, and the number of alerts to keep."""
    for number, line in enumerate(sys.stdin):
        request, kept = map(int, line.split())
        with TemporaryDirectory() as place:
            found = _round(folder / f"{request}.json", Path(place), kept)
        sys.stdout.write(orjson.dumps({**found, "round": number}).decode() + "\n")
        sys.stdout.flush()


def _round(file: Path, place: Path, kept: int) -> Round:
    batches = [
        [Block(shard=shard, after="0-0", position="1-0", rows=bytes.fromhex(rows)) for shard, rows in enumerate(line)]
        for line in map(orjson.loads, file.read_bytes().splitlines())
    ]
    with private_server(place) as url, connect(url) as client:
        stores = build_stores(client, url, settings_for(url, limits={"alerts_kept": kept}))
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
    """The ids of the newest alerts that any store keeps, sorted: the order within a batch is not compared."""
    found, after = [], "0"
    while page := (read := stores.alerts.page(after=after, limit=1_000)).alerts:
        found += [alert["id"] for alert in page]
        after = read.after
    return sorted(found) if len(found) > 2 * _KEPT else []


def _counts(stores: Any) -> list[Any]:
    alerts = [[*name, count] for name, count in sorted(stores.alerts.counts().items())]
    return [alerts, stores.results["ending"].counts()]


def _cpu_s(client: Any) -> float:
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user_main_thread"]) + float(cpu["used_cpu_sys_main_thread"])


def _report(folder: Path, rounds: int, before: str) -> None:
    pythons = {"before": before, "after": sys.executable} if before else {"after": sys.executable}
    processes = {name: _process(python, folder) for name, python in pythons.items()}
    for request in _SIZES:
        for kept in (0, _KEPT):
            found: dict[str, list[Round]] = {name: [] for name in pythons}
            for _ in range(rounds):
                for name, process in processes.items():
                    found[name].append(_asked(process, request, kept))
            _print(request, kept, found)
    for process in processes.values():
        process.communicate()


def _process(python: str, folder: Path) -> subprocess.Popen[str]:
    """A process of a checkout that answers with rounds; its packages are those of the checkout."""
    root = Path(python).absolute().parents[2]
    return subprocess.Popen(
        [python, "-m", "benchmarks.result_storing", f"--answer={folder}"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(process: subprocess.Popen[str], request: int, kept: int) -> Round:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    process.stdin.write(f"{request} {kept}\n")
    process.stdin.flush()
    found: Round = orjson.loads(process.stdout.readline())
    return found


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
