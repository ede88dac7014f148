"""Frames of every kind give the results of ``forestall match`` on the same events, as frames of the same kind."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forestall
from nfa import parse_patterns
from service.runs.stream_run import run_patterns
from streams import Event, EventBatch, StreamDeclaration
from tests.builders.frames import KINDS, SCHEMA, moment

PATTERNS = [
    "PATTERN p EVENT SEQ(A a, B b) WITHIN 9 s",
    "PATTERN p EVENT SEQ(A a [v > 0 OR w = 'é'], B b [x < 1 AND NOT is]) RETURN a.v, b.x AS x, count(b) AS n",
    "PATTERN p EVENT SEQ(A a, B+ b [v >= a.v], C c) RETURN first(b.w) AS w, sum(b.v) AS s, a.key AS k, c.is AS flag",
    "PATTERN p EVENT SEQ(A start, C? c, B end [n.v = 1]) RETURN end.n.w AS c PATTERN q EVENT SEQ(C c, NOT A)",
    "PATTERN p EVENT SEQ(A a, B b) WHERE [key, w] RETURN a.l[0] AS first, a.w",
]
TEXTS = st.sampled_from(["", "a", "é", '"\\'])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from("ABC"),
            "time": st.integers(0, 12).map(moment),
            "key": st.sampled_from(["k", "ü"]),
            "v": st.none() | st.integers(-1, 2),
            "w": st.none() | TEXTS,
            "x": st.none() | st.sampled_from([0.0, 0.5, 1e300]),
            "is": st.none() | st.booleans(),
            "n": st.none() | st.fixed_dictionaries({"v": st.none() | st.integers(0, 2), "w": st.none() | TEXTS}),
            "l": st.none() | st.lists(st.integers(0, 2), max_size=2),
        }
    ),
    max_size=9,
).map(lambda rows: [{"id": f"e{number}", **row} for number, row in enumerate(rows)])


def expected(rows, text):
    """The report on the events, read one by one."""
    events = [
        Event(
            id=row["id"],
            type=row["type"],
            time_us=round(row["time"].timestamp() * 1_000_000),
            key=row["key"],
            data={name: row[name] for name in SCHEMA.names[4:]},
        )
        for row in sorted(rows, key=lambda row: row["time"])
    ]
    declaration = StreamDeclaration(name="file", key="key")
    return run_patterns(parse_patterns(text), EventBatch.from_events(events), None, declaration)


@pytest.mark.parametrize("kind", KINDS)
@given(rows=ROWS, text=st.sampled_from(PATTERNS))
def test_a_frame_gives_the_results_of_its_events(kind, rows, text):
    result = forestall.match(KINDS[kind](rows), text)
    assert result.to_dict() == orjson.loads(expected(rows, text).to_json())
    assert len(result.table("matches")) == result.stats["matches"]
    if kind not in ("dataset", "lazy polars", "list"):
        assert type(result.matches) is type(KINDS[kind](rows))


def test_a_column_that_no_pattern_reads_is_not_converted():
    rows = KINDS["pandas"]([{"id": f"e{n}", "type": "A", "time": moment(n), "key": "k", "v": n} for n in range(2)])
    rows["mixed"] = [1, "one"]
    assert len(forestall.match(rows, "PATTERN p EVENT A a [v = 1]").matches) == 1
    with pytest.raises(forestall.ForestallError, match="mixed"):
        forestall.match(rows, "PATTERN p EVENT A a [mixed = 1]")
