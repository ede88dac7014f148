"""Cost of a table lookup in a condition, compared with a constant. The table has a million rows, and keys are random.

Events are of 20 types, one a millisecond, with the attributes ``customer``, a text, and ``amount``, a number; half of
the customers have a row. Each pattern has one step over every event. Each line has the time per event of the whole
``Matcher`` (thread time, one core) for a comparison with a constant, a comparison with a lookup, and ``IN TABLE``.
Attributes are JSON, as in the pipeline, or already columns. Rounds take turns, and the figures are medians. The last
line is the time of a lookup alone.

``scripts/bench lookup_speed [--quick]``
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from nfa import Matcher
from streams import Event, EventBatch
from streams.tables import TableDeclaration, Tables, keep_table

TABLE_ROWS, BATCH_ROWS, ROUNDS = 1_000_000, 65_536, 5
CONDITIONS: Mapping[str, str] = {
    "constant": "amount > 990 AND customer != 'c'",
    "lookup": "amount > lookup(customers, customer).limit",
    "IN TABLE": "amount > 990 AND customer IN TABLE customers",
}


def table_of(rows: int) -> Tables:
    """Return a table of customers with limits between 900 and 1,000."""
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "customers.csv")
        with path.open("w", encoding="utf-8") as file:
            file.write("customer,limit\n")
            file.writelines(f"customer-{number},{rng.randrange(900, 1_000)}\n" for number in range(rows))
        begun = time.perf_counter()
        version = keep_table(path, "csv", TableDeclaration(key=("customer",)))
        print(f"reading {rows:,} rows of CSV: {time.perf_counter() - begun:.1f} s")
    return Tables().with_version(replace(version, name="customers", version=1))


def batches_of(size: int, rows: int) -> Iterator[tuple[EventBatch, EventBatch]]:
    """Yield pairs of batches with the same random events: with JSON attributes, and with columns."""
    rng = random.Random(42)
    for first in range(0, size, BATCH_ROWS):
        owners = [f"customer-{rng.randrange(2 * rows)}" for _ in range(BATCH_ROWS)]
        amounts = [rng.randrange(1_000) for _ in owners]
        batch = EventBatch.from_events(
            [
                Event(
                    id=str(first + number),
                    type=f"T{number % 20}",
                    time_us=(first + number) * 1_000,
                    key=str(number % 1_000),
                    data={"customer": owner, "amount": amount},
                )
                for number, (owner, amount) in enumerate(zip(owners, amounts, strict=True))
            ]
        )
        columns: dict[tuple[str, ...], pa.Array] = {
            ("customer",): pa.array(owners),
            ("amount",): pa.array(amounts, pa.int64()),
        }
        yield batch, replace(batch, attributes=columns)


def matched_ns(condition: str, batches: list[EventBatch], tables: Tables) -> float:
    """Return the time per event of a matcher with one pattern, in nanoseconds."""
    matcher = Matcher(tracks="bound")
    matcher.add_pattern(f"PATTERN p EVENT _ a [{condition}]")
    batches = [replace(batch, tables=tables) for batch in batches]
    begun = time.thread_time_ns()
    for batch in batches:
        matcher.process(batch)
    return (time.thread_time_ns() - begun) / sum(map(len, batches))


def looked_up_ns(batches: list[EventBatch], tables: Tables) -> float:
    """Return the time of a lookup over Arrow columns, in nanoseconds."""
    begun = time.thread_time_ns()
    for batch in batches:
        tables.looked_up("customers", "limit", [batch.attributes[("customer",)]], np.zeros(0, np.int64))
    return (time.thread_time_ns() - begun) / sum(map(len, batches))


def main(arguments: list[str]) -> None:
    """Print the table."""
    size = BATCH_ROWS * (2 if "--quick" in arguments else 16)
    tables = table_of(TABLE_ROWS)
    pairs = list(batches_of(size, TABLE_ROWS))
    forms = {"JSON": [one for one, _ in pairs], "columns": [one for _, one in pairs]}
    print(f"{size:,} events, a table of {TABLE_ROWS:,} rows; ns per event\n")
    print(f"| attributes | {' | '.join(CONDITIONS)} | lookup / constant |")
    print("|---|" + "---|" * (len(CONDITIONS) + 1))
    for name, batches in forms.items():
        times: dict[str, list[float]] = {one: [] for one in CONDITIONS}
        for condition in CONDITIONS.values():
            matched_ns(condition, batches[:1], tables)
        for _ in range(ROUNDS):
            for one, condition in CONDITIONS.items():
                times[one].append(matched_ns(condition, batches, tables))
        found = {one: median(some) for one, some in times.items()}
        ratio = found["lookup"] / found["constant"]
        print(f"| {name} | {' | '.join(f'{one:,.0f}' for one in found.values())} | {ratio:.2f} |")
    alone = median(looked_up_ns(forms["columns"], tables) for _ in range(ROUNDS))
    print(f"\na lookup alone, over columns: {alone:,.0f} ns")


if __name__ == "__main__":
    main(sys.argv[1:])
