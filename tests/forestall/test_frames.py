"""Frames of every kind give the results of ``forestall match`` on the same events, as frames of the same kind."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forestall
from nfa import parse_patterns
from service.runs.stream_run import run_patterns
from streams import Event, EventBatch, StreamDeclaration
from tests.builders.frames import KINDS, SCHEMA, moment, table

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


OPTIONS = [
    {},
    {"stream": {"idle_timeout": 2}},
    {"stream": {"end_events": ["C"], "ties": "simultaneous"}, "is_open": True},
    {"stream": {"lateness": 2, "late": "process"}},
    {"stream": {"keys": {"own": "w"}}},
    {"constraints": {"constraints": ["precedence(A, B)"], "end": ["C"]}, "prune": "state"},
]
AT_ONCE = "PATTERN p EVENT SEQ(A a, B+ b [key = 'k' AND id != a.id]) WITHIN 3 s EMIT TIMEOUTS RETURN last(b.id) AS name"
OF_EVENTS = "PATTERN p EVENT SEQ(A a [id(a) != '9'], B b [key(b) = 'k' AND id(b) != id(a)]) RETURN id(b) AS name"


@settings(max_examples=30)
@given(
    rows=ROWS,
    text=st.sampled_from([*PATTERNS[:4], AT_ONCE, OF_EVENTS]),
    given_=st.sampled_from(OPTIONS),
    size=st.sampled_from([1, 2, 100]),
)
def test_rows_without_ids_are_called_by_their_numbers(rows, text, given_, size):
    named = table([{**row, "id": str(number)} for number, row in enumerate(rows)])
    bare = named.drop_columns(["id"]) if rows else named
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.runs.stream_run.BATCH_ROWS", size)
        wanted = forestall.match(named, text, **given_)
        found = forestall.match(bare, text, **given_)
    assert found.to_dict() == wanted.to_dict()
    for output in found.outputs:
        assert found.table(output).cast(wanted.table(output).schema) == wanted.table(output)


def test_a_column_that_no_pattern_reads_is_not_converted():
    rows = KINDS["pandas"]([{"id": f"e{n}", "type": "A", "time": moment(n), "key": "k", "v": n} for n in range(2)])
    rows["mixed"] = [1, "one"]
    assert len(forestall.match(rows, "PATTERN p EVENT A a [v = 1]").matches) == 1
    with pytest.raises(forestall.ForestallError, match="mixed"):
        forestall.match(rows, "PATTERN p EVENT A a [mixed = 1]")


LIMITS = [{"sensor": 1, "highest": 90, "since": moment(0)}, {"sensor": 2, "highest": 70, "since": moment(1)}]
READINGS = [
    {"id": f"e{n}", "type": "R", "time": moment(n), "key": "k", "sensor": sensor, "v": value}
    for n, (sensor, value) in enumerate([(1, 91), (2, 71), (1, 95), (2, 69)])
]
PER_ROW = """PATTERN hot FOR EACH ROW OF limits t
EVENT SEQ(R a [sensor = t.sensor AND v > t.highest], R b [sensor = t.sensor])
RETURN t.highest AS highest, lookup(limits, b.sensor).since AS since PATTERN any EVENT R a [v > 94]"""


def test_reference_tables_are_frames_or_files(tmp_path):
    file = tmp_path / "limits.csv"
    pd.DataFrame(LIMITS).to_csv(file, index=False)
    for one in (LIMITS, (pd.DataFrame(LIMITS), "sensor"), (pa.Table.from_pylist(LIMITS[::-1]), ["sensor"])):
        found = forestall.match(pd.DataFrame(READINGS), PER_ROW, tables={"limits": one})
        assert found.table("matches").select(["pattern", "row", "highest"]).to_pylist() == [
            {"pattern": "any", "row": None, "highest": None},
            {"pattern": "hot", "row": '{"sensor":1}', "highest": 90},
            {"pattern": "hot", "row": '{"sensor":2}', "highest": 70},
        ]
    by_text = forestall.match(READINGS, PER_ROW, tables={"limits": str(file)})
    assert by_text.stats["matches"] == 1  # a key in a file is a text, and a text equals no number
    assert [one for one in by_text.notices if "declare the column of limits as integer" in one]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (None, "no table is called 'limits'"),
        ({"limits": [{"sensor": 1}]}, "the table 'limits' has no column"),
        ({"limits": [LIMITS[0], LIMITS[0]]}, "the table 'limits': row 2.* is in row 1 already"),
        ({"limits": (LIMITS, "sensors")}, "the rows have no column 'sensors'"),
        ({"limits": "none.csv"}, r"the table 'limits': none\.csv cannot be read"),
        ({"limits": "none.txt"}, r"ends in \.csv"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tables, message):
    with pytest.raises(forestall.ForestallError, match=message):
        forestall.match(READINGS, PER_ROW, tables=tables)


@pytest.mark.parametrize("text", ["PATTERN p EVENT SEQ(A a, B b)", "PATTERN p EVENT SEQ(A a, B b[unknown IS NULL])"])
def test_columns_of_pandas_that_have_numbers_as_names_are_no_places(text):
    frame = pd.DataFrame({"type": ["A", "B"], "time": [moment(1), moment(2)], "key": ["k", "k"], 7: [1, 2]})
    frame[8] = frame["type"] = frame["type"].astype("category")
    assert len(forestall.match(frame, text).matches) == 1


ONE = pa.table({"type": ["A"], "time": [moment(1)], "key": ["k"]})
TWICE = pa.Table.from_arrays([*ONE.columns, ONE.column("key")], names=[*ONE.schema.names, "key"])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (TWICE.to_pandas(), "several columns are called 'key'"),
        (TWICE, "several columns are called 'key'"),
        (ONE.to_pandas().set_index([pd.Index(["k"], name="v"), pd.Index(["k"], name="v")]), "are called 'v'"),
        (ONE.to_pandas().assign(v=[1j]), "column 'v' cannot be read"),
        (ONE.to_pandas().assign(v=pd.arrays.SparseArray(np.ones(1))), "column 'v' cannot be read"),
        (ONE.to_pandas()["key"], "Series is not a table of events"),
        (pl.Series(["k"]), "Series is not a table of events"),
        (ONE.column("key"), "ChunkedArray is not a table of events"),
    ],
)
def test_frames_that_cannot_be_read_are_refused(frame, message):
    with pytest.raises(forestall.FrameRefused, match=message):
        forestall.match(frame, "PATTERN p EVENT A a [v IS NULL AND w = 1]")


@pytest.mark.parametrize("kind", ["float64", "object"])  # which pandas gives to columns without values
def test_columns_of_an_empty_frame_need_no_type(kind):
    frame = pd.DataFrame({name: pd.Series(dtype=kind) for name in ("id", "type", "time", "key", "v")})
    assert len(forestall.match(frame, "PATTERN p EVENT SEQ(A a, B b) RETURN a.v").matches) == 0


def test_a_scanner_of_a_dataset_is_a_table():
    assert len(forestall.match(ds.dataset(ONE).scanner(), "PATTERN p EVENT A a").matches) == 1


ZONED = pd.to_datetime(["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"])  # clocks of Berlin skip an hour between them
TIMES = [
    ZONED.tz_convert("Europe/Berlin"),
    ZONED.tz_convert(timezone(timedelta(hours=5, minutes=30))),
    ZONED.astype("datetime64[ns, UTC]"),
    ZONED.tz_localize(None).astype("datetime64[s]"),
    pd.Series([ZONED[0].tz_convert("Asia/Tokyo"), ZONED[1].tz_convert("Europe/Berlin")], dtype=object),
    pd.Categorical(ZONED),
    pd.Series(ZONED)[::-1].set_axis([7, 7]).iloc[::-1].to_numpy(),
]


@pytest.mark.parametrize("times", TIMES, ids=lambda times: f"{type(times).__name__}, {times.dtype}")
def test_times_of_pandas_are_moments(times):
    found = forestall.match(
        pd.DataFrame({"type": ["A", "B"], "time": times, "key": "k"}), "PATTERN p EVENT SEQ(A a, B b)"
    )
    assert list(found.matches["start"]) + list(found.matches["end"]) == list(ZONED)


LOCAL, AWARE = datetime(2026, 7, 1, 10), datetime(2026, 7, 1, 11, tzinfo=timezone(timedelta(hours=2)))
MIXED: dict[str, tuple[list[datetime], list[str]]] = {
    "naive first": ([LOCAL, AWARE], ["2026-07-01T08:00:00Z", "2026-07-01T09:00:00Z"]),
    "aware first": ([AWARE, LOCAL + timedelta(hours=2)], ["2026-07-01T09:00:00Z", "2026-07-01T10:00:00Z"]),
    "moments of pandas": ([pd.Timestamp(LOCAL), pd.Timestamp(AWARE)], ["2026-07-01T08:00:00Z", "2026-07-01T09:00:00Z"]),
}


@pytest.mark.parametrize("kind", [list, pd.DataFrame, lambda rows: pd.DataFrame(rows).astype({"at": "category"})])
@pytest.mark.parametrize("name", MIXED)
def test_a_zone_is_that_of_the_times_without_one_in_a_column_with_both(kind, name):
    times, moments = MIXED[name]
    rows = kind([{"type": one, "at": at, "since": at, "key": "k"} for one, at in zip("AB", times, strict=True)])
    text = "PATTERN p EVENT SEQ(A a, B b) RETURN b.since AS since"
    found = forestall.match(rows, text, time="at", zone="Europe/Berlin").to_dict()
    (found,) = found["matches"]
    assert [pd.Timestamp(found[end]) for end in ("start", "end")] == [pd.Timestamp(moment) for moment in moments]
    assert found["returns"]["since"].endswith(".000000Z")


def test_a_missing_time_among_times_with_and_without_a_zone_is_reported_with_its_row():
    frame = pd.DataFrame({"type": list("ABC"), "time": pd.Series([LOCAL, AWARE, pd.NaT], dtype=object), "key": "k"})
    with pytest.raises(forestall.ForestallError, match="'time': row 2: null or empty"):
        forestall.match(frame, "PATTERN p EVENT SEQ(A a, B b)", zone="Europe/Berlin")


@pytest.mark.parametrize("index", [[2.5, 1.5], ["x", "y"], [7, 7], pd.interval_range(0, 2)])
def test_an_index_of_pandas_without_a_name_is_not_read(index):
    frame = pd.DataFrame({"type": ["A", "B"], "time": ZONED, "key": "k"}).set_axis(index)
    assert len(forestall.match(frame, "PATTERN p EVENT SEQ(A a, B b)").matches) == 1


def test_texts_of_matches_are_objects_whatever_the_columns_were():
    frame = ONE.to_pandas().astype({"type": "category", "key": "category"}).set_index("key")
    found = forestall.match(frame, "PATTERN p EVENT A a").matches
    assert (found["key"].tolist(), found["pattern"].tolist()) == (["k"], ["p"])
    assert set(found.dtypes[["pattern", "key", "decided_by"]].astype(str)) == {str(ONE.to_pandas()["key"].dtype)}
