"""Cost per event of 10 to 10,000 saved questions: an aggregate with FOR EACH ROW of a table of questions.

There are 1,000 events a second, each with a user (of 10,000), a kind (of 200) and a region (of 50). The window is 10 s,
and the condition compares with a limit in each row. In *others*, an event belongs to the same three rows or to none,
for any number of other rows. In *spread*, the rows select values that occur: two thirds select a user and a kind, one
third a region and a kind. Events, ticks and results pass through the logs of a shard in memory, without Redis. Figures
are thread time of one core, the best of the rounds.

``scripts/bench saved_questions [--quick]``
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.rounds import best_of
from shards import InlineShards
from shards.kinds.aggregates import AggregateKind
from streams import Event, EventBatch, OperatorOn, StreamDeclaration, StreamOn, TableOn
from streams.tables import TableDeclaration, TableVersion, keep_table

NUMBERS = (10, 100, 1_000, 5_000, 10_000)
STEP, ROUNDS = 1_000, 2
DOCUMENT = {
    "name": "made",
    "of": "x",
    "by": ["user", "kind", "region"],
    "for_each_row_of": "questions",
    "values": {"n": "count()", "total": "sum(price)"},
    "window": "10 s",
    "having": "n >= row.most",
}


def main() -> None:
    """Print the table."""
    size = 10_000 if "--quick" in sys.argv else 50_000
    events = events_of(size)
    batches = [EventBatch.from_events(events[begin : begin + STEP]) for begin in range(0, size, STEP)]
    runs: dict[str, Callable[[], int]] = {"no questions": partial(run, table_of([]), batches)}
    for number in NUMBERS:
        runs[f"others {number:,}"] = partial(run, table_of(others(number)), batches)
        runs[f"spread {number:,}"] = partial(run, table_of(spread(number)), batches)
    best = best_of(runs, 1 if "--quick" in sys.argv else ROUNDS)
    print(f"{size:,} events\n{'questions':<16} {'us per event':>12} {'results':>8}")
    for name, timed in best.items():
        print(f"{name:<16} {timed.seconds / size * 1e6:>12.1f} {timed.result:>8,}")


def events_of(size: int) -> list[Event]:
    """Return the events. Every tenth event has the frequent values."""
    rng, found = Random(1), []
    for number in range(size):
        user, kind, region = rng.randrange(10_000), rng.randrange(200), rng.randrange(50)
        data = {"user": f"u{user}", "kind": f"k{kind}", "region": f"r{region}", "price": number % 7}
        if not number % 10:
            data |= {"user": "hot", "kind": "hot", "region": "hot"}
        found.append(Event(id=f"e{number}", type="A", time_us=number * 1_000, key=f"s{number % 97}", data=data))
    return found


def others(number: int) -> list[str]:
    """Return three rows with the frequent values, and rows with values that never occur."""
    return ["hot,,,900", ",hot,hot,900", "hot,hot,,900"] + [f"absent{n},k{n % 200},,1" for n in range(number - 3)]


def spread(number: int) -> list[str]:
    """Return rows with values that occur."""
    rng, found = Random(2), []
    for n in range(number):
        kind = f"k{rng.randrange(200)}"
        found.append(f",{kind},r{rng.randrange(50)},3" if n % 3 == 0 else f"u{rng.randrange(10_000)},{kind},,3")
    return found


def table_of(rows: Sequence[str]) -> TableVersion:
    """Return the table of the questions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        path.write_text("\n".join(["id,user,kind,region,most", *(f"q{n},{row}" for n, row in enumerate(rows)), ""]))
        types = {"user": "text", "kind": "text", "region": "text", "most": "integer"}
        version = keep_table(path, "csv", TableDeclaration(key=("id",), types=types))  # type: ignore[arg-type]
    return replace(version, name="questions", version=1)


def run(table: TableVersion, batches: Sequence[EventBatch]) -> int:
    """Run the events through a shard. Return the number of derived events."""
    kind, shards = AggregateKind(), InlineShards(1)
    source = StreamDeclaration(name="x")
    definition = replace(kind.read(DOCUMENT, lambda _: source), version=1)
    for name in ("x", "made.inputs", "made"):
        shards.append_record(name, StreamOn(source if name == "x" else StreamDeclaration(name=name, derived=True)))
    shards.append_record("", TableOn(table))
    for one in (*kind.parts(definition, lambda _: source), definition):
        shards.append_record(one.inputs[0].stream, OperatorOn(one))
    found = 0
    for batch in batches:
        shards.feed("x", batch)
        found += sum(len(block) for block in shards.settle())
    return found + sum(len(block) for block in shards.finish())


if __name__ == "__main__":
    main()
