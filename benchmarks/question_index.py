"""Questions at any time over a window: the index of questions (``aggregates.asking``) against DuckDB.

The window holds 1,000,000 events with three attributes (10,000 users, 200 kinds, 50 regions) and a price. A round has
1,000 new events and a number of questions, which neither engine can prepare for. The questions ask for one user by
kind, for one region and kind, for one kind by region in the last twentieth of the window, and for all events by region
in the last hundredth. DuckDB has the events in a table in memory and runs one thread. It gets all values of attributes
beforehand, because ENUM columns take a quarter of the time of texts. It is installed below ``.peers``. The answers of
both engines are compared. The output is the CPU time of a round for each number of questions and, for the index, the
time of single questions at 5,000 events and 500 questions a second. If a round has many questions, only a sample of
them is run, and the time is extrapolated.

``scripts/bench question_index [--quick]``
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from aggregates import AskedValue, HeldWindow, Question, QuestionIndex
from benchmarks.peers.environments import PEERS, Unavailable, set_up
from streams import column_of

SIZES = {"user": 10_000, "kind": 200, "region": 50}
QUESTIONS = (10, 30, 100, 300, 1_000, 10_000)
MOST_RUN = 200
ROUND = 1_000
VALUES = {"n": AskedValue("count"), "total": AskedValue("sum", "price")}


class Asked(NamedTuple):
    """A question in both forms. The first parameter of the statement is the start of its window."""

    question: Question
    statement: str
    parameters: list[Any]
    window_us: int


def events(begin: int, count: int) -> tuple[Any, dict[str, Any]]:
    """Return events one microsecond apart. The values of attributes are skewed."""
    rng = np.random.default_rng(begin)
    columns: dict[str, Any] = {}
    for name, size in SIZES.items():
        numbers = (rng.random(count) ** 2 * size).astype(np.int32)
        columns[name] = pa.DictionaryArray.from_arrays(
            column_of(numbers), pa.array([f"{name} {n}" for n in range(size)])
        )
    return np.arange(begin, begin + count), columns | {"price": column_of(rng.integers(1, 10_000, count) / 4)}


def questions(seed: int, span_us: int) -> Iterator[Asked]:
    """Yield questions of four kinds."""
    rng = np.random.default_rng(seed)
    kinds = (
        (("kind",), ("user",), span_us),
        ((), ("region", "kind"), span_us),
        (("region",), ("kind",), span_us // 20),
        (("region",), (), span_us // 100),
    )
    while True:
        by, names, window_us = kinds[rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])]
        where = {name: f"{name} {int(rng.random() ** 2 * SIZES[name])}" for name in names}
        condition = "".join(f" AND {name} = ?" for name in names)
        grouped = f" GROUP BY {by[0]} ORDER BY {by[0]}::VARCHAR" if by else ""
        selected = "".join(f"{name}, " for name in by) + "count(*), sum(price)"
        statement = f"SELECT {selected} FROM events WHERE time > ?{condition}{grouped}"  # noqa: S608 (names of this file)
        question = Question(by=by, where=where, values=VALUES, window_us=window_us)
        yield Asked(question, statement, [*where.values()], window_us)


class Duck:
    """DuckDB with the events of the window in a table."""

    def __init__(self, span_us: int) -> None:
        environment = set_up(PEERS["duckdb"])
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        sys.path.append(str(environment.folder / "venv" / "lib" / version / "site-packages"))
        self.version, self._span_us, self._now_us = environment.version, span_us, 0
        self._base: Any = importlib.import_module("duckdb").connect(":memory:")
        self._base.execute("SET threads = 1")
        for name, size in SIZES.items():
            values = ", ".join(f"'{name} {number}'" for number in range(size))
            self._base.execute(f"CREATE TYPE some_{name} AS ENUM ({values})")
        columns = "".join(f"{name} some_{name}, " for name in SIZES)
        self._base.execute(f"CREATE TABLE events (time BIGINT, {columns} price DOUBLE)")

    def insert(self, times_us: Any, columns: dict[str, Any]) -> None:
        """Append events, and delete the events that have left the window."""
        arrived = pa.table({"time": column_of(times_us), **columns})
        self._base.register("arrived", arrived)
        self._base.execute("INSERT INTO events SELECT * FROM arrived")
        self._base.unregister("arrived")
        self._now_us = int(times_us[-1])
        self._base.execute("DELETE FROM events WHERE time <= ?", [self._now_us - self._span_us])

    def ask(self, asked: Asked) -> list[tuple[Any, ...]]:
        """Return the result rows of a question."""
        found: list[tuple[Any, ...]] = self._base.execute(
            asked.statement, [self._now_us - asked.window_us, *asked.parameters]
        ).fetchall()
        return found


class Ours:
    """The index of questions over the same window."""

    def __init__(self, span_us: int) -> None:
        self.index = QuestionIndex(HeldWindow(attributes=tuple(SIZES), measures=("price",), span_us=span_us))

    def insert(self, times_us: Any, columns: dict[str, Any]) -> None:
        """Insert events."""
        self.index.insert(times_us, columns)

    def ask(self, asked: Asked) -> list[tuple[Any, ...]]:
        """Return the result rows of a question."""
        return [tuple(row.values()) for row in self.index.ask(asked.question).rows()]


def seconds_of(engine: Duck | Ours, arrived: tuple[Any, Any], asked: Sequence[Asked]) -> tuple[float, float, list[Any]]:
    """Return the CPU seconds for inserting events, the CPU seconds for answering questions, and the answers."""
    start = time.process_time()
    engine.insert(*arrived)
    middle = time.process_time()
    answers = [engine.ask(one) for one in asked]
    return middle - start, time.process_time() - middle, answers


def compare(ours: Ours, duck: Duck, span_us: int, rounds: int) -> int:
    """Print the time of a round by number of questions. Return the time of the next event."""
    asking, begin = questions(1, span_us), span_us
    print(f"| questions per {ROUND:,} events | index | DuckDB {duck.version} | ratio |\n|---|---|---|---|")
    ahead: int | None = None
    for count in QUESTIONS:
        spent = {"index": 0.0, "duck": 0.0}
        for _ in range(rounds):
            some, arrived = [next(asking) for _ in range(min(count, MOST_RUN))], events(begin, ROUND)
            answers = []
            for name, engine in (("index", ours), ("duck", duck)):
                inserting, answering, found = seconds_of(engine, arrived, some)
                spent[name] += (inserting + answering * count / len(some)) / rounds
                answers.append(found)
            if answers[0] != answers[1]:
                raise ValueError("the engines answer differently")
            begin += ROUND
        ahead = count if ahead is None and spent["index"] < spent["duck"] else ahead
        ratio = spent["duck"] / spent["index"]
        print(f"| {count:,} | {spent['index'] * 1e3:,.1f} ms | {spent['duck'] * 1e3:,.1f} ms | {ratio:.1f} |")
    print(f"the index is ahead from {ahead} questions on" if ahead else "the index is never ahead")
    return begin


def latency(ours: Ours, begin: int, span_us: int, seconds: int) -> None:
    """Print the time of single questions at 500 questions and 5,000 events a second, in the inserting process."""
    asking, taken, start = questions(2, span_us), [], time.process_time()
    for step in range(50 * seconds):
        ours.insert(*events(begin + 100 * step, 100))
        for _ in range(10):
            asked, before = next(asking), time.perf_counter()
            ours.ask(asked)
            taken.append(time.perf_counter() - before)
    used = (time.process_time() - start) / seconds
    p50, p99 = np.quantile(taken, [0.5, 0.99]) * 1e3
    print(f"a question: p50 {p50:.2f} ms, p99 {p99:.2f} ms; {used:.0%} of a core, the making of the events included")


def main() -> None:
    """Print the comparison, and the explanation that the index gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 events in the window")
    span_us, rounds = (100_000, 1) if parser.parse_args().quick else (1_000_000, 2)
    ours, following = Ours(span_us), span_us
    for begin in range(0, span_us, 20_000):
        ours.insert(*events(begin, 20_000))
    asking = questions(3, span_us)
    for _ in range(1_000):
        ours.ask(next(asking))
    try:
        duck = Duck(span_us)
    except Unavailable as reason:
        print(f"DuckDB is not available: {reason}")
    else:
        duck.insert(*events(0, 1))
        for begin in range(0, span_us, 20_000):
            duck.insert(*events(begin, 20_000))
        following = compare(ours, duck, span_us, rounds)
    latency(ours, following, span_us, 2 if span_us < 1_000_000 else 20)
    explained = ours.index.explain()
    print(
        {
            name: explained[name]
            for name in ("events", "bytes", "column_bytes", "configuration", "migrations", "cost_ns")
        }
    )


if __name__ == "__main__":
    main()
