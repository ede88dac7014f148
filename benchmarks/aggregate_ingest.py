"""Speed and memory of a sliding count and sum over many groups: events per second of one core, bytes per held event.

*engine*: rows that are read already, with a condition that is examined after each event. *with reading*: from batches,
as a shard takes them in. Best times of rounds that take turns, thread time.

    scripts/bench aggregate_ingest --events=300000 --groups=100000
"""

from __future__ import annotations

import tracemalloc
from argparse import ArgumentParser
from random import Random

from aggregates import AggregateRun, read_aggregate
from benchmarks.rounds import best_of
from shards.kinds.aggregates.reading import EventReader, condition_of
from streams import Event, EventBatch, StreamDeclaration

_BATCH = 10_000
_DOCUMENT = {
    "of": "sales",
    "by": ["key"],
    "values": {"n": "count()", "total": "sum(v)"},
    "window": "10 s",
    "having": "n >= 1000",
}


def batches_of(events: int, groups: int) -> list[EventBatch]:
    """Events 100 us apart, each of a group drawn at random."""
    chance = Random(7)
    made = [
        Event(id=f"e{n}", type="A", time_us=100 * n, key=f"k{chance.randrange(groups)}", data={"v": n % 97})
        for n in range(events)
    ]
    return [EventBatch.from_events(made[first : first + _BATCH]) for first in range(0, events, _BATCH)]


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    events = 20_000 if asked.quick else asked.events
    body, declaration = read_aggregate(_DOCUMENT), StreamDeclaration(name="sales")
    reader, batches = EventReader.of(body), batches_of(events, asked.groups)
    rows = [reader.rows(batch, declaration) for batch in batches]

    def engine() -> int:
        run = AggregateRun(body, condition_of(body))
        return sum(len(run.process(some)) for some in rows)

    def with_reading() -> int:
        run = AggregateRun(body, condition_of(body))
        return sum(len(run.process(reader.rows(batch, declaration))) for batch in batches)

    for name, timed in best_of({"engine": engine, "with reading": with_reading}, asked.rounds).items():
        print(f"{name:14} {events / timed.seconds:12,.0f} events/s")
    tracemalloc.start()
    run = AggregateRun(body, condition_of(body))
    for batch in batches:
        run.process(reader.rows(batch, declaration))
    size, held = tracemalloc.get_traced_memory()[0], run.measures()["held"]
    print(f"memory         {size / held:12,.0f} bytes per held event ({held:,} held)")


if __name__ == "__main__":
    main()
