"""Cost per event of a pattern with FOR EACH ROW, over a table of 1,000 rows of which one applies to each event.

There is one event a millisecond, of 20 types, with the attributes ``sensor`` (one of 1,000, also the key) and
``value``. A table has a row with a limit for each sensor. Each line has the time per event of the whole ``Matcher``
(thread time, one core) for

- *one*: the pattern without the table, with a constant in place of the limit: every event concerns it,
- *rows*: the pattern for each row (FOR EACH ROW): every event meets one of the 1,000 rows,
- *patterns*: 1,000 patterns with constants in place of the row, which is the meaning of *rows*.

All three have the same matches. Attributes are JSON, as in the pipeline, or columns, as in files. Rounds take turns,
and the figures are medians. The last line is the time in which a shard reads a table of maximum size again, as it does
before the first event after a row changed.

``scripts/bench rows_speed [--quick]``
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

import pyarrow as pa

from benchmarks.matcher_speed import ROWS, matches_in
from nfa import MOST_ROWS, Matcher
from streams import Event, EventBatch
from streams.tables import TableDeclaration, Tables, keep_table

SENSORS, LIMIT, ROUNDS = 1_000, 900, 3
SHAPES: Mapping[str, str] = {
    "one step": "T0 a [{own}value > {limit}]",
    "two steps": "SEQ(T0 a [{own}value > {limit}], T1 b [{own}value > {limit}]) WITHIN 100 s",
    "condition between steps": "SEQ(T0 a [{own}value > {limit}], T1 b [{own}value > a.value]) WITHIN 100 s",
}
WAYS = ("one", "rows", "patterns")


def tables_of(rows: int) -> Tables:
    """Return the table of limits."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "limits.csv")
        lines = [f"sensor-{number},{LIMIT}" for number in range(rows)]
        path.write_text("\n".join(["sensor,highest", *lines, ""]), encoding="utf-8")
        version = keep_table(path, "csv", TableDeclaration(key=("sensor",)))
    return Tables().with_version(replace(version, name="limits", version=1))


def batches_of(size: int) -> Iterator[tuple[str, EventBatch]]:
    """Yield the events, with JSON attributes and with columns."""
    rng = random.Random(42)
    sensors = [f"sensor-{rng.randrange(SENSORS)}" for _ in range(size)]
    values = [rng.randrange(1_000) for _ in range(size)]
    batch = EventBatch.from_events(
        [
            Event(
                id=str(number),
                type=f"T{rng.randrange(20)}",
                time_us=number * 1_000,
                key=sensor,
                data={"sensor": sensor, "value": value},
            )
            for number, (sensor, value) in enumerate(zip(sensors, values, strict=True))
        ]
    )
    yield "JSON", batch
    columns: Mapping[tuple[str, ...], pa.Array] = {
        ("sensor",): pa.array(sensors),
        ("value",): pa.array(values, pa.int64()),
    }
    yield "columns", replace(batch, attributes=columns)


def matcher_of(shape: str, way: str, tables: Tables) -> Matcher:
    """Return a fresh matcher of a shape."""
    matcher = Matcher(tracks="bound")
    if way == "rows":
        event = shape.format(own="sensor = t.sensor AND ", limit="t.highest")
        matcher.add_pattern(f"PATTERN p FOR EACH ROW OF limits t EVENT {event}")
    for number in range({"one": 1, "patterns": SENSORS}.get(way, 0)):
        own = f"sensor = 'sensor-{number}' AND " if way == "patterns" else ""
        matcher.add_pattern(f"PATTERN p{number} EVENT {shape.format(own=own, limit=LIMIT)}")
    matcher.read_tables(tables)
    return matcher


def nanoseconds_of(shape: str, way: str, batch: EventBatch, tables: Tables) -> tuple[float, int]:
    """Return the thread time per event and the matches of a fresh matcher.

    Its tables are built before the clock starts.
    """
    matcher = matcher_of(shape, way, tables)
    matches_in(matcher, batch.slice(0, 1))
    start = time.thread_time_ns()
    found = matches_in(matcher, batch.slice(1, len(batch) - 1))
    return (time.thread_time_ns() - start) / len(batch), found


def reading_ms() -> float:
    """Return the time to read a table of maximum size again, in milliseconds, with the index for one step."""
    first, *others = (tables_of(MOST_ROWS) for _ in range(1 + ROUNDS))
    batch, times = EventBatch.from_events([]), []
    matcher = matcher_of(SHAPES["one step"], "rows", first)
    for tables in others:
        start = time.thread_time_ns()
        matcher.process(replace(batch, tables=tables))
        times.append((time.thread_time_ns() - start) / 1e6)
    return median(times)


def main() -> None:
    """Print the table."""
    size = 4 * ROWS if "--quick" in sys.argv else 1_000_000
    tables = tables_of(SENSORS)
    print(f"{size:,} events; ns per event\n")
    print("| attributes | pattern | one | rows | patterns | matches | rows / one | rows / patterns |")
    print("|---|---|---|---|---|---|---|---|")
    for form, batch in batches_of(size):
        for name, shape in SHAPES.items():
            taken: dict[str, list[float]] = {way: [] for way in WAYS}
            found: set[int] = set()
            for _ in range(ROUNDS):
                for way in WAYS:
                    spent_ns, matches = nanoseconds_of(shape, way, batch, tables)
                    taken[way].append(spent_ns)
                    found.add(matches)
            (matches,) = found
            one, rows, patterns = (median(taken[way]) for way in WAYS)
            times = " | ".join(f"{spent_ns:,.0f}" for spent_ns in (one, rows, patterns))
            ratios = f"{rows / one:.2f} | {rows / patterns:.2f}"
            print(f"| {form} | {name} | {times} | {matches:,} | {ratios} |", flush=True)
    print(f"\nreading a table of {MOST_ROWS:,} rows again: {reading_ms():,.0f} ms")


if __name__ == "__main__":
    main()
