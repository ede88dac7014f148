"""Latency of a question to the shards at a steady rate of events, from the request to its answer.

The whole service runs as in production. One thread posts events, and several threads ask ``GET /v1/traces``. Each
thread asks its next question when it is due, or later when the previous question is answered. Questions about all open
transactions are answered by every shard, questions about one transaction by its shard. The latency includes HTTP and
the transfer to the shards and back.

    scripts/bench question_latency --seconds=60 --questions=20
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import httpx
import numpy as np

from benchmarks.filled_log import STREAM
from benchmarks.pipeline_latency import FIRST_SHARE, cpu_s, declare, post_at_rate, ready_bodies
from service.processes.temporary import TemporaryService, running

_ASKERS = 4
_KINDS: Mapping[str, Mapping[str, str]] = {
    "all shards": {"stream": STREAM, "limit": "1"},
    "one key": {"stream": STREAM, "limit": "1", "key": "order-7"},
}


def main() -> None:
    """Print the latencies of questions and the CPU time of each process."""
    wanted = _arguments()
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        more = {"RUNTIME": wanted.runtime, "LIMITS__QUESTIONS_AT_ONCE": str(2 * _ASKERS)}
        with running(Path(name) / "data", lambda text: print(text, flush=True), more) as service:
            os.environ["FORESTALL_API_KEY"] = wanted.key = service.api_key
            wanted.url = service.url
            declare(service)
            _measure(service, wanted)


def _measure(service: TemporaryService, wanted: Namespace) -> None:
    bodies, _ = ready_bodies(wanted.request)
    before = cpu_s(service)
    posting = Thread(target=post_at_rate, args=(bodies, wanted), name="posting")
    found: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    begun = time.time()
    askers = [
        Thread(target=_ask, args=(wanted, begun, place, found), name=f"asker-{place}") for place in range(_ASKERS)
    ]
    for thread in (posting, *askers):
        thread.start()
    for thread in (posting, *askers):
        thread.join()
    spent = {part: seconds - before[part] for part, seconds in cpu_s(service).items()}
    print(f"{wanted.rate:,} events/s and {wanted.questions:,} questions/s for {wanted.seconds:.0f} s, {wanted.runtime}")
    for kind, latencies in found.items():
        p50, p99, most = np.percentile(latencies, [50, 99, 100]) * 1_000
        print(f"  {kind}: {len(latencies):,} questions, p50 {p50:.0f} ms, p99 {p99:.0f} ms, most {most:.0f} ms")
    print("  CPU seconds: " + ", ".join(f"{part} {seconds:.1f}" for part, seconds in spent.items()))


def _ask(wanted: Namespace, begun: float, place: int, found: Mapping[str, list[float]]) -> None:
    """Ask every fourth question, from number ``place`` on, at its due time.

    Records the latencies after the first tenth of the time.
    """
    headers = {"Authorization": f"Bearer {wanted.key}"}
    with httpx.Client(base_url=f"{wanted.url}/v1", headers=headers, timeout=60.0) as http:
        for number in range(place, round(wanted.seconds * wanted.questions), _ASKERS):
            due = begun + number / wanted.questions
            time.sleep(max(0.0, due - time.time()))
            kind = list(_KINDS)[number // _ASKERS % len(_KINDS)]
            sent = time.time()
            if sent > begun + 1.5 * wanted.seconds:
                sys.stdout.write("  the questions' rate is NOT reached\n")
                return
            http.get("/traces", params=_KINDS[kind]).raise_for_status()
            if number > FIRST_SHARE * wanted.seconds * wanted.questions:
                found[kind].append(time.time() - sent)


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=int, default=2_000, help="events per second")
    parser.add_argument("--request", type=int, default=50, help="events of a request")
    parser.add_argument("--questions", type=int, default=20, help="questions per second")
    parser.add_argument("--runtime", default="continuous", choices=["continuous", "micro-batch"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
