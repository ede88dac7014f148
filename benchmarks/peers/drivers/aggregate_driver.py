"""Driver for an aggregate case with our library: from columns in memory, in batches, to the derived events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import orjson

from aggregates import AggregateRun, Emission, read_aggregate
from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.drivers.library_driver import ROUNDS, ROWS, columns_of
from benchmarks.peers.drivers.reading import now, number_of, options_of, tell
from shards.kinds.aggregates.reading import EventReader, condition_and_bounds
from streams import EventBatch, StreamDeclaration


def main() -> None:
    """Run the case after a warm-up and print its result, the median of several rounds."""
    options = options_of("queries")
    (text,) = orjson.loads(Path(options.queries).read_bytes())
    document = orjson.loads(text)
    del document["name"]
    body = read_aggregate(document)
    holds, bounds = condition_and_bounds(body)
    reader, ready_at, spent = EventReader.of(body), now(), dict[str, float]()
    declaration = StreamDeclaration(name=body.of)

    def measure(path: str) -> tuple[float, int, str]:
        batch = columns_of(path)
        rounds = [round_of(batch) for _ in range(ROUNDS)]
        spent["cpu_s"] = median(cpu_s for _, cpu_s, _ in rounds)
        return median(seconds for seconds, _, _ in rounds), *digest_of((0, one) for one in numbers_of(rounds[-1][2]))

    def round_of(batch: EventBatch) -> tuple[float, float, list[Emission]]:
        run, found = AggregateRun(body, holds, bounds), list[Emission]()
        begin, before_s = time.perf_counter(), time.process_time()
        for start in range(0, len(batch), ROWS):
            some = batch.slice(start, min(ROWS, len(batch) - start))
            found += run.process(reader.columns(some, declaration))
        return time.perf_counter() - begin, time.process_time() - before_s, found

    tell(ready_at, options, measure, spent)


def numbers_of(found: list[Emission]) -> Iterator[list[int]]:
    """Yield, for each derived event, the number of its event, the count and the sum."""
    for one in found:
        yield [number_of(one.cause), one.data["n"], int(one.data["total"])]


if __name__ == "__main__":
    main()
