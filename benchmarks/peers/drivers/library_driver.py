"""Driver for a case on the matcher as a library: columns in memory to match columns, in batches of 262,144 rows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.drivers.reading import lines_of, now, number_of, options_of, tell
from nfa import Matcher, MatchOutput
from streams import EventBatch, key_hash
from streams.batch import SCHEMA

ROWS = 262_144
ROUNDS = 5


def main() -> None:
    """Run the case and print its result, the median of several rounds after a warm-up."""
    options = options_of("queries")
    texts: list[str] = json.loads(Path(options.queries).read_text(encoding="utf-8"))
    ready_at, spent = now(), dict[str, float]()

    def measure(path: str) -> tuple[float, int, str]:
        batch = columns_of(path)
        taken, cpu_s = [], []
        for _ in range(ROUNDS):
            matcher = matcher_of(texts)
            matcher.process(batch.slice(0, 0))  # the time to build the matcher's tables counts as start-up
            begin, before_s = time.perf_counter(), time.process_time()
            for part in parts_of(batch):
                matcher.process(part)
            taken.append(time.perf_counter() - begin)
            cpu_s.append(time.process_time() - before_s)
        spent["cpu_s"] = median(cpu_s)
        return median(taken), *answer(texts, batch)

    tell(ready_at, options, measure, spent)


def matcher_of(texts: list[str]) -> Matcher:
    """Return a matcher without a guard."""
    matcher = Matcher(tracks="bound")
    for text in texts:
        matcher.add_pattern(text)
    return matcher


def parts_of(batch: EventBatch) -> Iterator[EventBatch]:
    """Yield the batches for the matcher."""
    return (batch.slice(start, min(ROWS, len(batch) - start)) for start in range(0, len(batch), ROWS))


def answer(texts: list[str], batch: EventBatch) -> tuple[int, str]:
    """Return number and digest of the matches. This is not measured, because it converts matches to Python values."""
    matcher = matcher_of(texts)
    outputs = (matcher.process(part) for part in parts_of(batch))
    return digest_of(found for output in outputs for found in numbers_of(output))


def numbers_of(output: MatchOutput) -> Iterator[tuple[int, list[int]]]:
    """Yield, for each match, the place of its pattern and the numbers of its events. Patterns are called p0, p1, ..."""
    for match in output.matches():
        yield int(match.pattern[1:]), sorted(number_of(one) for ids in match.bindings.values() for one in ids)


def columns_of(path: str) -> EventBatch:
    """Return the events of a file as one batch, with ``value`` as a column."""
    rows = list(lines_of(path))
    keys = [row["key"] for row in rows]
    hashes = {key: key_hash(key) for key in set(keys)}
    columns = pa.RecordBatch.from_arrays(
        [
            pa.array([row["id"] for row in rows]),
            pa.array([row["type"] for row in rows]).dictionary_encode(),
            pa.array([row["time"] for row in rows], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            pa.array(keys),
            pa.array(np.array([hashes[key] for key in keys], np.uint64)),
            pa.array([b"{}"] * len(rows), pa.binary()),
        ],
        schema=SCHEMA,
    )
    values = pa.array([row["data"].get("value") for row in rows], pa.float64())
    return EventBatch(columns, {("value",): values})


if __name__ == "__main__":
    main()
