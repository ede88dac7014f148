"""A fuzzer of joins. Random hostile documents and events must lead to results, a suspension or a clear error.

Documents and events of at most 100 kB are made from seeds and run as a project by ``forestall run``. Half of the
documents are valid; in the other half, parts are replaced. Each case runs in a process with at most 1 GB beside its
initial memory (RLIMIT_AS). All events of a case are in one micro-batch, with an event of another stream that has a
pattern. The report counts refusals by code, results, suspensions, and the CPU time of the longest micro-batch. A case
fails if an error other than ``ForestallError`` is raised, if there are more results than the limits of the join allow,
if an alert of the other stream is missing, or if a micro-batch takes more than 5 s of CPU time.

    scripts/bench hostile_joins --cases=5000 --first=0 --processes=1
"""

from __future__ import annotations

import json
import resource
import sys
import time
import traceback
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from service.cli.inputs import read_event_batch
from service.errors import ProjectRefused
from service.projects import EVENTS, SUSPENSIONS, LocalProject, Results, read_project
from service.runs import results_of
from shards import InlineShards, RowBlock
from streams import Event, EventBatch, ForestallError
from streams.readers import reading_of

MOST_BYTES = 100_000
_ROOM_BYTES = 1024**3
_MOST_CPU_S = 5.0
_MOST_ENTRIES = 64  # entries of a shard in a micro-batch, as FORESTALL_BATCH__MAX_ENTRIES
_WARMED = range(-40, 0)
_OTHER = "other"
_WATCH = {"kind": "pattern", "name": "watch", "stream": _OTHER, "text": "PATTERN watch EVENT A a"}
_STREAMS = ("a", "b", "c")
_KEYS = ("unknown", "unknown", "unknown", "k1", "k2", "7")
_WINDOWS: tuple[Any, ...] = ("24 h", "24 h", "1 us", "9 s", "none", {"last": 1}, {"last": 50}, "1000000 w")
_CLOSINGS: tuple[Any, ...] = ("unique", "clustered", "end", "punctuation", {"type": "L"}, ["end", {"type": "L"}])
_FORMS = ("{a}.v", "{a}.w.x", "id({a})", "type({a})", "time({a})")
_TOTALS = ("count({a})", "sum({a}.v)", "min({a}.v)", "max({a}.v)", "avg({a}.v)", "first({a}.v)", "last({a}.v)")
_CONDITIONS = ("{a}.v = {b}.v", "id({a}) = id({b}) AND {a}.v > 7", "time({a}) < time({b}) OR {b}.v IS NULL", "{a}.v")
_ODD: tuple[Any, ...] = (None, True, -1, 0, 2**70, 1e300, "", "x" * 50_000, [], [[]], {}, "data..k", "unique", ["o", 5])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case.

    Attributes:
        seed: The seed of the case.
        code: The code of the error that refused the case, or empty if it ran.
        events: The maximum number of events that its joins read.
        results: The number of events in its derived streams.
        is_suspended: Whether a join was suspended.
        took_s: The duration of the case.
        batch_cpu_s: The CPU time of its longest micro-batch.
        fault: A description of the fault, or empty if there is none.
    """

    seed: int
    code: str
    events: int
    results: int
    is_suspended: bool
    took_s: float
    batch_cpu_s: float = 0.0
    fault: str = ""


def document_of(chance: Random) -> dict[str, Any]:
    """Return a random document of a join."""
    number = chance.choice((2, 2, 2, 3, 4, 16))
    aliases = [f"i{place}" for place in range(number)]
    emit = chance.choice(("each", "each", "on_close"))
    forms = (*_FORMS, *(_TOTALS if emit == "on_close" else ()))
    columns = chance.choice((1, 2, 5, 5, 200))
    inputs = [
        {
            "stream": chance.choice(_STREAMS[: chance.choice((1, 3))]),
            "as": alias,
            **({"window": chance.choice(_WINDOWS)} if chance.random() < 0.4 else {}),
            **({"closed_by": chance.choice(_CLOSINGS)} if chance.random() < 0.6 or emit == "on_close" else {}),
            **({"key": "data.k"} if chance.random() < 0.2 else {}),
            **({"type": ["A", "L"]} if chance.random() < 0.2 else {}),
        }
        for alias in aliases
    ]
    found: dict[str, Any] = {
        "kind": "join",
        "name": "j",
        "inputs": inputs,
        "window": chance.choice(("24 h", "24 h", "24 h", "none", "1000 w")),
        "emit": emit,
        "return": {f"c{place}": chance.choice(forms).format(a=chance.choice(aliases)) for place in range(columns)},
    }
    if chance.random() < 0.4:
        found["outer"] = chance.sample(aliases, chance.randint(1, number))
    if chance.random() < 0.2:
        found["late"] = chance.choice(("report", "drop", "fail"))
    if chance.random() < 0.2:
        found["memory"] = {"rows": chance.choice((1, 50, 10_000)), "spill": True}
    if chance.random() < 0.1:
        found["wait"] = "auto"
    if chance.random() < 0.2:
        found["results"] = {"per_event": chance.choice((1, 7, 10_000)), "ahead": chance.choice((1, 500, 200_000))}
    if chance.random() < 0.25:
        found["where"] = chance.choice(_CONDITIONS).format(a=aliases[0], b=aliases[1])
    for _ in range(chance.choice((0, 0, 1, 3))):
        _spoil(found, chance)
    return found


def _spoil(node: Any, chance: Random) -> None:
    """Replace, remove or repeat a part of a document."""
    while True:
        places: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not places:
            return
        place = chance.choice(places)
        if isinstance(node[place], dict | list) and chance.random() < 0.7:
            node = node[place]
            continue
        if chance.random() < 0.3:
            del node[place]
        else:
            node[place] = deepcopy(chance.choice(_ODD))
        return


def lines_of(chance: Random) -> list[str]:
    """Return random events as JSON lines, at most 100 kB."""
    value = chance.choice((1, 1, 1, 5_000, 40_000))
    found, size, time_us = list[str](), 0, 0
    keys = chance.choice((_KEYS[:1], _KEYS))
    most = chance.choice((3, 30, 300, 5_000))
    while len(found) < most:
        time_us += chance.choice((0, 1, 1_000_000))
        data = {"v": chance.choice((1, "x" * value, 2.5, None)), "k": chance.choice((*keys, "", None))}
        event = {"id": f"e{len(found)}", "type": chance.choice("AAAL"), "time": time_us, "key": chance.choice(keys)}
        line = json.dumps({**event, "time": f"2026-03-02T00:00:00.{time_us % 1_000_000:06}Z", "data": data})
        size += len(line) + 1
        if size > MOST_BYTES:
            break
        found.append(line)
    return found


def case(seed: int) -> Outcome:
    """Run a case.

    Args:
        seed: The seed of the random document and events.
    """
    chance, begun = Random(seed), time.perf_counter()
    with TemporaryDirectory() as folder:
        document, lines = document_of(chance), lines_of(chance)
        try:
            text = json.dumps(document)[:MOST_BYTES]
            declared = [json.dumps({"kind": "stream", "name": name}) for name in (*_STREAMS, _OTHER)]
            shop = "\n---\n".join([*declared, json.dumps(_WATCH), text])
            Path(folder, "shop.yaml").write_text(shop, encoding="utf-8")
            events = Path(folder, "events.jsonl")
            events.write_text("\n".join(lines) + "\n", encoding="utf-8")
            found, alerts, cpu_s = _run(Path(folder), events)
            took, results = len(document["inputs"]) * len(lines), len(found[EVENTS])
            return Outcome(
                seed=seed,
                code="",
                events=took,
                results=results,
                is_suspended=bool(found[SUSPENSIONS]),
                took_s=time.perf_counter() - begun,
                batch_cpu_s=max(cpu_s),
                fault=_fault(results, 220_000 + 21 * took, alerts, cpu_s),
            )
        except ForestallError as error:
            return Outcome(seed, error.code, 0, 0, is_suspended=False, took_s=time.perf_counter() - begun)
        # house: allow broad-except: any other error is what is looked for
        except Exception:
            fault = traceback.format_exc(limit=-6)
            return Outcome(seed, "", 0, 0, is_suspended=False, took_s=time.perf_counter() - begun, fault=fault)


def _fault(results: int, most: int, alerts: int, cpu_s: Sequence[float]) -> str:
    """Return a description of the limits that a case exceeded, or the empty text."""
    faults = []
    if results > most:
        faults.append(f"{results} results, at most {most} are allowed")
    if alerts != len(cpu_s):
        faults.append(f"{alerts} alerts of the other stream in {len(cpu_s)} micro-batches")
    if max(cpu_s) > _MOST_CPU_S:
        faults.append(f"a micro-batch took {max(cpu_s):.1f} s of CPU time")
    return "; ".join(faults)


def _run(folder: Path, events: Path) -> tuple[Results, int, list[float]]:
    """Return the results, the other stream's alerts in their own micro-batches, and each micro-batch's CPU time."""
    project = LocalProject.of(read_project(folder), folder)
    plan, shards = project.plan, InlineShards(1)
    for stream, record in plan.records():
        shards.append_record(stream, record)
    if refused := shards.settle():
        raise ProjectRefused.of([orjson.loads(row.body)["reason"] for block in refused for row in block])
    for name in _STREAMS:
        batch = read_event_batch(events, reading_of(project.stream(name)))
        shards.feed(name, batch)
        for route, path in plan.routes(name).items():
            shards.feed(name, batch.keyed_by(path), route)
    rows, alerts, cpu_s = list[RowBlock](), 0, list[float]()
    for _ in range(2):  # before and after the results that the measured disorder decides
        while any(shards.waiting):
            other = Event(id=f"o{len(cpu_s)}", type="A", time_us=len(cpu_s), key="k", data={})
            shards.feed(_OTHER, EventBatch.from_events([other]))
            begun = time.process_time()
            step = shards.step(0, _MOST_ENTRIES)
            cpu_s.append(time.process_time() - begun)
            alerts += sum(len(block) for block in step if block.found.kind.name == "alert")
            rows += step
        rows += shards.decide()
    rows += shards.finish()
    bodies = ((row.kind, orjson.loads(row.body)) for block in rows for row in block)
    return results_of(plan, bodies), alerts, cpu_s


def begin() -> None:
    """Load and compile everything that cases need, then limit the memory of this process."""
    for seed in _WARMED:
        case(seed)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM_BYTES, used + _ROOM_BYTES))


def main(cases: int, first: int, processes: int) -> int:
    """Run cases and print their outcomes. Return the number of faults."""
    codes: Counter[str] = Counter()
    faults, results, suspended, slowest, longest = [], 0, 0, (0.0, -1), (0.0, -1)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=begin) as pool:
        for found in pool.map(case, range(first, first + cases), chunksize=10):
            codes[found.code or "ran"] += 1
            results, suspended = results + found.results, suspended + found.is_suspended
            slowest = max(slowest, (found.took_s, found.seed))
            longest = max(longest, (found.batch_cpu_s, found.seed))
            if found.fault:
                faults.append(found)
                print(f"case {found.seed}: {found.fault}", file=sys.stderr, flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{cases} cases from {first} on: {dict(codes.most_common())}")
    print(
        f"{results} results, {suspended} suspended; slowest {slowest[0]:.1f} s (case {slowest[1]}); peak {peak:.0f} MB"
    )
    print(f"longest micro-batch {longest[0]:.2f} s of CPU time (case {longest[1]})")
    print(f"{len(faults)} faults")
    return len(faults)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    sys.exit(min(1, main(given.cases, given.first, given.processes)))
