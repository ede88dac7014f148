"""Hostile requests to the whole service. No request may fail or stop the service, and other clients must be answered.

There are 20,000 cases of models, constraint sets, patterns, schemas and events, each of at most 100 KB, generated from
seeds. The report counts answers 5xx, requests that take more than 30 s, tracebacks in the logs and restarted processes.
It also shows the longest wait of another client and the memory of each process of the API. Patterns and events of the
cases pass through the pipeline.

    scripts/bench hostile --cases=20000
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import httpx

from benchmarks.hostile.cases import Call, calls
from benchmarks.pipeline_chaos import children_of
from service.processes.supervisor import CHILDREN
from service.processes.temporary import TemporaryService, running
from service.readiness import missing_part

_CASES_OF_A_STREAM = 10
_MOST_S = 30.0
_MOST_BYTES = 1024**3
_MOST_WAIT_S = 1.0
_POLL_S = 0.2
_PATIENCE_S = 120.0
_DRAINED_S = 300.0
_SHOWN = 12


@dataclass(slots=True)
class Found:
    """The results of a run.

    Attributes:
        statuses: The number of answers by status.
        codes: The number of answers by problem code.
        failed: Answers 5xx and requests without an answer, with the seeds of their cases.
        slow: Requests beyond the time limit.
        took_s: The duration of each request.
        waited_s: The duration of each request of the other client.
        peaks: The peak memory of each process of the API, in bytes beyond its memory at the start.
        notes: Further faults.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    took_s: list[tuple[float, str]] = field(default_factory=list)
    waited_s: list[float] = field(default_factory=list)
    peaks: dict[int, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Descriptions of all faults. Empty if the run has none."""
        late = sum(wait > _MOST_WAIT_S for wait in self.waited_s)
        large = sum(peak > _MOST_BYTES for peak in self.peaks.values())
        counts = {
            f"answers failed, as {self.failed[:3]}": len(self.failed),
            f"requests took more than {_MOST_S:.0f} s, as {self.slow[:3]}": len(self.slow),
            f"times another client waited for more than {_MOST_WAIT_S:.0f} s": late,
            "processes took more than a GiB": large,
        }
        return [f"{count} {what}" for what, count in counts.items() if count] + self.notes


def main() -> int:
    """Run the cases. Return the exit status: 0 if there are no faults."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    options = parser.parse_args()
    with TemporaryDirectory() as folder, running(Path(folder), print) as service:
        found = _attacked(service, range(options.first, options.first + options.cases))
        _look(service, Path(folder), found)
    print(f"answers: {dict(sorted(found.statuses.items()))}")
    print(f"problems: {dict(found.codes.most_common(40))}")
    print(f"requests: {len(found.took_s):,}, together {sum(took_s for took_s, _ in found.took_s):.0f} s; the longest:")
    for took_s, shown in sorted(found.took_s, reverse=True)[:_SHOWN]:
        print(f"{took_s:6.1f} s  {shown}")
    print(f"longest wait of another client: {max(found.waited_s):.2f} s")
    print(f"most memory beyond the first: {max(found.peaks.values(), default=0) / 2**20:.0f} MiB")
    for fault in found.faults:
        print(f"FAULT: {fault}")
    return bool(found.faults)


def _attacked(service: TemporaryService, seeds: range) -> Found:
    found, is_over = Found(), Event()
    watchers = [Thread(target=watch, args=(service, found, is_over)) for watch in (_ask_meanwhile, _watch_memory)]
    for watcher in watchers:
        watcher.start()
    headers = {"Authorization": f"Bearer {service.api_key}"}
    begun, told = time.monotonic(), 0.0
    try:
        with httpx.Client(base_url=f"{service.url}/v1", headers=headers, timeout=_PATIENCE_S) as client:
            for seed in seeds:
                stream = f"s{seed // _CASES_OF_A_STREAM}"
                if seed % _CASES_OF_A_STREAM == 0 or seed == seeds.start:
                    client.post("/streams", json={"name": stream, "key": "data.id"})
                for call in calls(seed, stream):
                    _send(client, call, seed, found)
                if (passed := time.monotonic() - begun) > told + 20:
                    told = passed
                    print(f"{passed:6.0f} s  {seed - seeds.start + 1:,} cases, {len(found.failed)} failed")
    finally:
        is_over.set()
        for watcher in watchers:
            watcher.join()
    return found


def _send(client: httpx.Client, call: Call, seed: int, found: Found) -> None:
    begun = time.monotonic()
    shown = f"{call.method} {call.path} (seed {seed})"
    try:
        answer = client.request(
            call.method, call.path, params=call.query, content=call.body, headers={"Content-Type": call.kind}
        )
    except httpx.HTTPError as error:
        found.failed.append(f"{shown}: {error!r}")
        return
    took_s = time.monotonic() - begun
    found.took_s.append((took_s, shown))
    found.statuses[answer.status_code] += 1
    if answer.status_code >= 400:
        found.codes[answer.json().get("code", "?")] += 1
    if answer.status_code >= 500:
        found.failed.append(f"{shown}: {answer.status_code} {answer.text[:200]}")
    if took_s > _MOST_S:
        found.slow.append(f"{shown}: {took_s:.0f} s")


def _ask_meanwhile(service: TemporaryService, found: Found, is_over: Event) -> None:
    """Act as another client: send requests at intervals until the run has ended, and record the waits."""
    headers = {"Authorization": f"Bearer {service.api_key}"}
    with httpx.Client(base_url=f"{service.url}/v1", headers=headers, timeout=_PATIENCE_S) as client:
        while not is_over.wait(_POLL_S):
            begun = time.monotonic()
            client.get("/streams/s0")
            found.waited_s.append(time.monotonic() - begun)


def _watch_memory(service: TemporaryService, found: Found, is_over: Event) -> None:
    first: dict[int, int] = {}
    while not is_over.wait(_POLL_S):
        for pid in _api_processes(service):
            if (size := _resident_bytes(pid)) is not None:
                first.setdefault(pid, size)
                found.peaks[pid] = max(found.peaks.get(pid, 0), size - first[pid])


def _api_processes(service: TemporaryService) -> list[int]:
    """Return the ids of the API's process and of its workers.

    These are all forked processes except the other parts of the service.
    """
    others = {service.supervisor.pid(name) for name in CHILDREN if name != "api"}
    return [pid for server in children_of(os.getpid()) for pid in children_of(server) if pid not in others]


def _resident_bytes(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def _look(service: TemporaryService, folder: Path, found: Found) -> None:
    """Wait until the pipeline has matched all events, and check the logs. Faults are added to ``found``."""
    deadline = time.monotonic() + _DRAINED_S
    while waiting := service.client.get("/pipeline")["backlog"]["waiting_volume"]["events"]:
        if time.monotonic() > deadline:
            found.notes.append(f"{waiting} events still wait to be matched")
            break
        time.sleep(_POLL_S)
    if (missing := missing_part(service.client)) is not None:
        found.notes.append(f"not ready at the end: {missing}")
    for log_file in sorted(service.supervisor.log_folder.glob("*.log")):
        text = log_file.read_text(errors="replace")
        if count := text.count("Traceback"):
            place = text.index("Traceback")
            found.notes.append(f"{count} tracebacks in {log_file.name}: {text[place : place + 1500]}")
    supervisor = service.supervisor
    started = {name: supervisor.starts(name) for name in supervisor.children}
    found.notes += [f"{name} was started {count} times" for name, count in started.items() if count > 1]


if __name__ == "__main__":
    sys.exit(main())
