"""Speed of Flink SQL and of ``forestall match --sql`` over one CSV file, on queries where Flink follows the standard.

Both read the file, and seconds are CPU time. For Flink, the second of two jobs in one process is measured, without its
start. For Forestall, the whole command is measured. Flink has no PREV, and its greedy quantifiers do not backtrack, so
these queries differ from those of ``benchmarks.row_patterns``. They are taken from the documentation and tests of
Flink.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from benchmarks.peers.environments import OPEN_PACKAGES, PEERS, compiled, java_tool, set_up

QUERIES = {
    "falling prices": """MEASURES START_ROW.t AS began, LAST(PRICE_DOWN.t) AS bottom, LAST(PRICE_UP.t) AS ended
      ONE ROW PER MATCH AFTER MATCH SKIP TO LAST PRICE_UP PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
      DEFINE PRICE_DOWN AS (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) OR
      PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1), PRICE_UP AS PRICE_UP.price > LAST(PRICE_DOWN.price, 1)""",
    "reluctant": """MEASURES C.price AS lastPrice ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B*? C)
      DEFINE A AS A.price > 10, B AS B.price < 15, C AS C.price > 12""",
    "three rows": """MEASURES A.price AS a, B.price AS b, C.price AS c ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
      PATTERN (A B C) DEFINE A AS A.price < 50, B AS B.price > A.price, C AS C.price > B.price""",
    "pair": """MEASURES DOWN.price AS bottom, UP.t AS ended ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
      PATTERN (DOWN UP) DEFINE DOWN AS DOWN.price < 13, UP AS UP.price > 80""",
    "drop": """MEASURES C.t AS dropped, A.price - C.price AS difference ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
      PATTERN (A B* C) WITHIN INTERVAL '1' HOUR
      DEFINE B AS B.price > A.price - 10, C AS C.price < A.price - 10""",
}
_TIMEOUT_S = 600


def compare(table: pa.Table, query: str) -> None:
    """Print the times of both, one line for each query. ``query`` is the template for a clause.

    Raises:
        Unavailable: Flink cannot be set up here.
    """
    environment = set_up(PEERS["flink"])
    classes = compiled(environment, "row-patterns", [Path(__file__).parent / "RowPatterns.java"], {})
    opened = [word for name in OPEN_PACKAGES for word in ("--add-opens", f"java.base/{name}=ALL-UNNAMED")]
    java = [str(java_tool("java")), "-Xmx4g", *opened, "-cp", f"{classes}:{environment.jars}", "RowPatterns"]
    print(f"Flink SQL {environment.version} and forestall match --sql, {table.num_rows:,} rows of CSV, processor time")
    with TemporaryDirectory() as folder:
        place = Path(folder)
        moments = pc.cast(pc.floor_temporal(table["t"], unit="millisecond"), pa.timestamp("ms"))
        rounded = table.set_column(1, "t", moments)
        csv.write_csv(rounded, place / "ticks.csv")
        csv.write_csv(rounded, place / "bare.csv", csv.WriteOptions(include_header=False))
        for name, clause in QUERIES.items():
            (place / "query.sql").write_text(query.format(clause=clause), encoding="utf-8")
            rows, slow = _on_flink([*java, str(place / "bare.csv"), str(place / "query.sql")])
            found, fast = _on_ours(place)
            verdict = "equal" if rows == found else f"DIFFERENT: {found:,}"
            print(f"  {name:14} {rows:9,} rows, {verdict}   {slow:7.2f} s and {fast:5.2f} s: {slow / fast:5.1f} x")


def _on_flink(words: list[str]) -> tuple[int, float]:
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    last = [line for line in done.stdout.splitlines() if line.startswith("RESULT")][-1]
    _, rows, seconds = last.split()
    return int(rows), float(seconds)


def _on_ours(place: Path) -> tuple[int, float]:
    forestall = str(Path(sys.executable).parent / "forestall")
    words = [forestall, "match", "--sql", str(place / "query.sql"), "--events", str(place / "ticks.csv")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout.count("\n") - 1, seconds
