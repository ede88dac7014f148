"""Speed of the whole pipeline with its sink on a backlog, compared with another checkout or the other runtime.

    scripts/bench backlog [--events=1000000] [--rounds=1] [--before=PYTHON] [--runtime=continuous]
        [--before-runtime=micro-batch]

Input: orders of the whole workload, Q1, Q2 and EP1 with constraints, in requests of 10,000, in a log of eight shards.
Each run gets a fresh copy of the log, without any other state, and starts the pipeline's process with the settings of a
service. The time starts when the process begins to match, after Spark is started and kernels are compiled. It ends when
the sink has written the results of the last entry of each shard. The runs take turns. ``--before`` is the interpreter
of another checkout (default: this one). The ratio is the median over pairs of rounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.filled_log import filled_log, order_batches
from benchmarks.pipeline_chaos import children_of
from service.runtime import Stores
from service.stores import connect
from streams import log_key, position_order
from tests.builders.service import private_server, settings_for

_SHARDS = 8
_PARTS = ("redis", "driver", "java", "workers")
_REQUEST = 10_000
_PAUSE_S, _PATIENCE_S = 0.05, 1_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    python: str
    runtime: str


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--before", default=sys.executable, help="Python of another checkout")
    parser.add_argument("--runtime", default="continuous")
    parser.add_argument("--before-runtime", default="micro-batch")
    wanted = parser.parse_args()
    runs = {
        "before": _Run(python=wanted.before, runtime=wanted.before_runtime),
        "after": _Run(python=sys.executable, runtime=wanted.runtime),
    }
    found: dict[str, list[float]] = {name: [] for name in runs}
    with TemporaryDirectory(prefix="forestall-bench-") as folder:
        filled = Path(folder) / "filled"
        filled.mkdir()
        with filled_log(filled, order_batches(wanted.events, request=_REQUEST), shards=_SHARDS) as log:
            events = log.events
        for number in range(wanted.rounds):
            for name, run in runs.items():
                place = Path(folder) / f"{name}-{number}"
                shutil.copytree(filled, place)
                figures = _measured(run, place)
                shutil.rmtree(place)
                found[name].append(figures["seconds"])
                _print(name, run, events, figures)
    ratio = median(old / new for old, new in zip(found["before"], found["after"], strict=True))
    print(f"{ratio:.2f} times as many events a second as before")


def _print(name: str, run: _Run, events: int, figures: Mapping[str, Any]) -> None:
    rate = events / figures["seconds"]
    cpu = ", ".join(f"{part} {figures[f'{part}_s']:.1f}" for part in _PARTS)
    print(
        f"  {name:6s} {run.runtime:11s} {figures['seconds']:7.1f} s, {rate:9,.0f} events/s; CPU seconds: {cpu}; "
        f"{figures['alerts']:,} alerts, {figures['endings']:,} endings",
        flush=True,
    )


def _measured(run: _Run, place: Path) -> dict[str, Any]:
    """Process the backlog in a copy of the log, and return the measurements."""
    with private_server(place) as url, connect(url) as client:
        stores = Stores(client, url, settings_for(url, shards=_SHARDS))
        ends = {shard: _last(client, shard) for shard in range(_SHARDS)}
        deadline = time.monotonic() + _PATIENCE_S
        with _pipeline(run, place, url) as process:
            while (begun_us := stores.pipeline_status.started_us()) is None:
                _wait(process, deadline)
            cpu_s, spent = _cpu_s(client), _spent_s(process)
            while not _is_done(stores, ends):
                _wait(process, deadline)
            seconds = time.time() - begun_us / 1_000_000
            return {
                "seconds": seconds,
                "redis_s": _cpu_s(client) - cpu_s,
                **{name: seconds - spent.get(name, 0.0) for name, seconds in _spent_s(process).items()},
                "alerts": sum(stores.alerts.counts().values()),
                "endings": sum(found["count"] for found in stores.results["ending"].counts()),
            }


@contextmanager
def _pipeline(run: _Run, place: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the pipeline of a checkout while the block runs."""
    root = Path(run.python).absolute().parents[2]
    settings = {"REDIS_URL": url, "DATA_DIR": str(place / "data"), "RUNTIME": run.runtime, "SHARDS": str(_SHARDS)}
    environment = {**os.environ, "PYTHONPATH": str(root)} | {
        f"FORESTALL_{name}": text for name, text in settings.items()
    }
    with (place / "pipeline.log").open("wb") as log:
        words = [run.python, "-m", "service.processes.pipeline_process"]
        process = subprocess.Popen(words, cwd=root, env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], deadline: float) -> None:
    if process.poll() is not None or time.monotonic() > deadline:
        raise SystemExit("the pipeline ended, or took too long")
    time.sleep(_PAUSE_S)


def _last(client: Any, shard: int) -> str:
    return str(client.xinfo_stream(log_key(shard))["last-generated-id"].decode())


def _is_done(stores: Stores, ends: Mapping[int, str]) -> bool:
    at = {report.shard: report.position for report in stores.pipeline_status.shards()}
    return all(position_order(at.get(shard, "0-0")) >= position_order(end) for shard, end in ends.items())


def _spent_s(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Return the CPU seconds of the pipeline's process (the driver), of Java, and of Spark's workers."""
    spent = {"driver_s": 0.0, "java_s": 0.0, "workers_s": 0.0}
    found = [process.pid]
    while found:
        pid = found.pop()
        with suppress(FileNotFoundError, ProcessLookupError):
            name, _, fields = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(") ")
            seconds = sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
            part = "driver_s" if pid == process.pid else "java_s" if name == "java" else "workers_s"
            spent[part] += seconds
            found += children_of(pid)
    return spent


def _cpu_s(client: Any) -> float:
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user_main_thread"]) + float(cpu["used_cpu_sys_main_thread"])


if __name__ == "__main__":
    main()
