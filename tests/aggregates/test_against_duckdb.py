"""Aggregates and questions have the values that DuckDB computes over the same events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isclose
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from aggregates import AggregateRun
from aggregates import read_aggregate as read
from aggregates.asking import Question
from shards.kinds.aggregates.reading import condition_and_bounds
from streams import key_hash
from tests.builders.aggregates import columns_of
from tests.builders.questions import ATTRIBUTES, MEASURES, VALUES, held, index_of, insert
from tests.references.aggregates import Row

FUNCTIONS = {
    "count()": "count(*)",
    "count(x)": "count(x)",
    "count_if(y)": "count(*) FILTER (y)",
    "sum(x)": "sum(x)",
    "avg(x)": "avg(x)",
    "stddev(x)": "stddev_samp(x)",
    "min(x)": "min(x)",
    "max(x)": "max(x)",
    "distinct(x)": "count(DISTINCT x)",
    "first(x)": "first(x ORDER BY n)",
    "last(x)": "last(x ORDER BY n)",
    "quantile(x, 0.25)": "quantile_disc(x, 0.25)",
    "quantile(x, 0.9)": "quantile_disc(x, 0.9)",
}
EVENTS = "e JOIN e AS i ON i.g IS NOT DISTINCT FROM e.g AND i.n <= e.n"
NEWEST = "QUALIFY row_number() OVER (PARTITION BY e.n ORDER BY i.n DESC) <= 3"
WINDOWS: Sequence[tuple[Any, str]] = [
    ("7 us", f"SELECT e.t AS due, e.n AS no, i.* FROM {EVENTS} AND e.t - i.t < 7"),
    ({"last": 3}, f"SELECT e.t AS due, e.n AS no, i.* FROM {EVENTS} {NEWEST}"),
    ({"tumbling": "5 us"}, "SELECT (t // 5 + 1) * 5 AS due, 0 AS no, * FROM e"),
    ({"hopping": "6 us", "every": "2 us"}, "SELECT (t // 2 + 1 + k) * 2 AS due, 0 AS no, e.* FROM e, range(3) AS r(k)"),
]
ASKED = {
    "n": "count(*)",
    "users": "count(DISTINCT user)",
    "known": "count(region)",
    "prices": "count(price)",
    "total": "sum(price)",
    "mean": "avg(size)",
    "least": "min(price)",
    "most": "max(size)",
}


def rounded(rows: Iterable[Sequence[Any]], expected: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows with the expected numbers in place of those that are nearly equal, as DuckDB adds in another order."""
    wanted = iter(expected)
    return [
        [want if _is_near(one, want) else one for one, want in zip(row, next(wanted, row), strict=True)] for row in rows
    ]


def _is_near(one: Any, want: Any) -> bool:
    return isinstance(one, float) and isinstance(want, float | int) and isclose(one, want, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_windows_have_the_values_of_duckdb(seed: int) -> None:
    chance = Random(seed)
    window, sql = WINDOWS[seed % 4]
    chosen = ["count()", *chance.sample(sorted(FUNCTIONS), 4)]
    numbers: Sequence[Any] = chance.choice([[0, 1, 2, 5, -3, None], [0.25, -1.5, 4.0, 1e9, None]])
    names = [f"v{n}" for n in range(len(chosen))]
    document = {"of": "s", "by": ["g"], "values": dict(zip(names, chosen, strict=True)), "window": window}
    condition = "v0 >= 2" if seed % 4 > 1 and chance.random() < 0.5 else ""
    body = read(document | ({"having": condition} if condition else {}))
    events, time_us = list[tuple[Any, ...]](), 0
    for n in range(chance.randrange(1, 60)):
        time_us += chance.choice([0, 1, 1, 2, 4])
        events.append(
            (n, time_us, chance.choice(["a", "b", None]), chance.choice(numbers), chance.choice([True, None]))
        )
    run, found, step = AggregateRun(body, *condition_and_bounds(body)), [], chance.choice([1, 7, 60])
    for first in range(0, len(events), step):
        rows = [_row(chosen, *event) for event in events[first : first + step]]
        found += run.process(columns_of(body, rows))
    found += run.advance_time(10**6)
    e = pa.Table.from_pylist([dict(zip("ntgxy", event, strict=True)) for event in events], _schema(numbers))
    values = ", ".join(f"{FUNCTIONS[one]} AS {name}" for name, one in zip(names, chosen, strict=True))
    select = f"SELECT due, coalesce(g, 'null') AS key, {values} FROM ({sql}) GROUP BY due, no, g"
    filtered = f"{select} HAVING {condition or 'true'} ORDER BY due, key, no"
    with duckdb.connect() as database:
        database.register("e", e)
        expected = database.execute(filtered).fetchall()
    found.sort(key=lambda one: (one.time_us, one.key))
    got = [(one.time_us, one.key, *(one.data[name] for name in names)) for one in found]
    assert rounded(got, expected) == [list(one) for one in expected]


def _row(chosen: Sequence[str], n: int, time_us: int, group: str | None, x: Any, y: bool | None) -> Row:
    key = group or "null"
    arguments = tuple(True if one == "count()" else y if "(y" in one else x for one in chosen)
    return Row(time_us, (group,), key, key_hash(key), f"e{n}", arguments)


def _schema(numbers: Sequence[Any]) -> pa.Schema:
    x = pa.float64() if isinstance(numbers[0], float) else pa.int64()
    return pa.schema({"n": pa.int64(), "t": pa.int64(), "g": pa.string(), "x": x, "y": pa.bool_()})


@pytest.mark.parametrize("seed", range(10))
def test_questions_have_the_answers_of_duckdb(seed: int) -> None:
    chance = Random(seed)
    events = [(time_us, _data(chance)) for time_us in sorted(chance.choices(range(60), k=chance.randrange(1, 200)))]
    index = index_of(held(40), chance.choice([(), (2, 1, 3), (0, 0, 4)]))
    insert(index, events)
    e = pa.table({"t": np.array([time_us for time_us, _ in events])} | _columns([data for _, data in events]))
    with duckdb.connect() as database:
        database.register("e", e)
        for _ in range(10):
            by, names = (chance.sample(some, chance.randrange(3)) for some in (ATTRIBUTES, sorted(ASKED)))
            names, window_us = ["n", *(name for name in names if name != "n")], chance.randrange(1, 41)
            where = {name: value for name, value in (("region", "eu"), ("kind", 3)) if chance.random() < 0.4}
            question = Question(by=by, where=where, values={name: VALUES[name] for name in names}, window_us=window_us)
            select = ", ".join([*by, *(f"{ASKED[name]} AS {name}" for name in names)])
            wanted = " AND ".join([f"t > {events[-1][0] - window_us}", *(f"{name} = ?" for name in where)])
            group = f"GROUP BY {', '.join(by)} ORDER BY {', '.join(f'{one} NULLS FIRST' for one in by)}" if by else ""
            expected = database.execute(f"SELECT {select} FROM e WHERE {wanted} {group}", [*where.values()]).fetchall()
            got = [[row[name] for name in (*by, *names)] for row in index.ask(question).rows()]
            assert rounded(got, expected) == [list(one) for one in expected]


def _data(chance: Random) -> dict[str, Any]:
    return {
        "user": chance.choice(["ann", "bob", "eve", None]),
        "region": chance.choice(["eu", "us", None]),
        "kind": chance.randrange(5),
        "price": chance.choice([None, 0.25, -2.5, 1e6]),
        "size": chance.choice([None, 0, 1, 2]),
    }


def _columns(data: Sequence[dict[str, Any]]) -> dict[str, Any]:
    types = {"kind": pa.int64(), "price": pa.float64(), "size": pa.int64()}
    names = (*ATTRIBUTES, *MEASURES)
    return {name: pa.array([one[name] for one in data], types.get(name, pa.string())) for name in names}
