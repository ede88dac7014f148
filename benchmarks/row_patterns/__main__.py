"""``forestall.sql`` on five published queries with MATCH_RECOGNIZE: speed, and ratio to the reference.

The input is an Arrow table with one million rows of ticks in ten thousand partitions, sorted by time. The result is an
Arrow table, too. The whole call is measured: parsing the query, grouping, conditions, search, measures. The reference
(``tests/references/row_patterns.py``) reads about ten thousand rows of the first partitions, as dictionaries, and must
return the same rows as the engine. ``--quick`` uses a hundredth of the rows. ``--flink`` instead compares the command
with Flink SQL (``benchmarks/row_patterns/flink.py``).

The queries are those of the documentation of Oracle (V shapes, sessions) and Flink (average below a threshold, drop
within an hour, rising prices), with the columns of this table.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.row_patterns.flink import compare
from nfa import run_query
from tests.references import row_patterns

ROWS, PARTITIONS, ROUNDS, FEW = 1_000_000, 10_000, 5, 10_000

QUERIES = {
    "V shapes": """MEASURES STRT.t AS began, LAST(DOWN.t) AS bottom, LAST(UP.t) AS ended
      ONE ROW PER MATCH AFTER MATCH SKIP TO LAST UP PATTERN (STRT DOWN+ UP+)
      DEFINE DOWN AS DOWN.price < PREV(DOWN.price), UP AS UP.price > PREV(UP.price)""",
    "average": """MEASURES FIRST(A.t) AS began, LAST(A.t) AS ended, AVG(A.price) AS mean
      ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) DEFINE A AS AVG(A.price) < 50""",
    "drop": """MEASURES C.t AS dropped, A.price - C.price AS difference
      ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B* C) WITHIN INTERVAL '1' HOUR
      DEFINE B AS B.price > A.price - 10, C AS C.price < A.price - 10""",
    "rising": """MEASURES FIRST(A.price) AS lowest, LAST(A.price) AS top, B.price AS last_price
      ONE ROW PER MATCH PATTERN (A+ B)
      DEFINE A AS LAST(A.price, 1) IS NULL OR A.price > LAST(A.price, 1), B AS B.price < LAST(A.price)""",
    "sessions": """MEASURES MATCH_NUMBER() AS session, COUNT(*) AS events, FIRST(t) AS began, LAST(t) - FIRST(t) AS took
      ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (B S*)
      DEFINE S AS S.t - PREV(S.t) <= INTERVAL '10' MINUTE""",
}

_QUERY = "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY t {clause})"


def ticks(rows: int) -> pa.Table:
    """Return prices between 0 and 99 of symbols. The ticks of a symbol are about 25 seconds to 25 minutes apart."""
    random = np.random.default_rng(7)
    symbols = random.integers(0, rows * PARTITIONS // ROWS, rows)
    gap = 25 * 60_000_000 * 2 // (rows * PARTITIONS // ROWS)
    times = np.cumsum(random.integers(0, gap, rows)) // 2
    return pa.table(
        {
            "symbol": pa.array(symbols),
            "t": pa.array(times, pa.timestamp("us")),
            "price": pa.array(random.integers(0, 100, rows)),
        }
    )


def query(clause: str) -> str:
    """Return the whole query with a clause."""
    return _QUERY.format(clause=clause)


def seconds_of(text: str, table: pa.Table) -> tuple[float, int]:
    """Return the median time of a query, and its number of rows."""
    taken, found = [], 0
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        found = run_query(text, lambda _: table).num_rows
        taken.append(time.perf_counter() - begin)
    return median(taken), found


def reference_seconds(text: str, few: pa.Table) -> float:
    """Return the time of the reference, and check that its rows are those of the engine."""
    rows = few.to_pylist()
    begin = time.perf_counter()
    expected = row_patterns.run_clause(text, rows, few.column_names)
    taken = time.perf_counter() - begin
    found = run_query(text, lambda _: few)
    if [list(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)] != expected:
        raise SystemExit(f"the rows of the engine and of the reference differ: {text}")
    return taken


def main() -> None:
    """Print rows per second and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--flink", action="store_true")
    options = parser.parse_args()
    table = ticks(ROWS // 100 if options.quick else ROWS)
    if options.flink:
        compare(table.slice(0, ROWS // 5), _QUERY)
        return
    few = table.filter(pc.less(table["symbol"], FEW * PARTITIONS // ROWS))
    print(f"{table.num_rows:,} rows, {PARTITIONS * table.num_rows // ROWS:,} partitions, median of {ROUNDS} calls")
    for name, clause in QUERIES.items():
        text = query(clause)
        slow = reference_seconds(text, few) / few.num_rows
        seconds, found = seconds_of(text, table)
        rate = table.num_rows / seconds
        print(f"  {name:10} {rate:12,.0f} rows/s  {found:9,} rows found   {slow * rate:8,.0f} x the reference")


if __name__ == "__main__":
    main()
