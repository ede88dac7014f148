"""FOR EACH ROW in a shard: a version of the table holds from its place of the log on, in every cut and replay."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shards.state import ShardState
from streams import PatternOn, StreamDeclaration, StreamOn, TableOff, TableOn, TableRow, Tick
from streams.tables import TableDeclaration, TableFiles, TableVersion, ValueType, keep_table
from tests.builders.shards import Step, bodies, event, log_of

ORDERS = StreamDeclaration(name="orders")
TEXT = """PATTERN hot FOR EACH ROW OF limits t
EVENT SEQ(A a [who = t.who AND v > t.most], A b [who = t.who AND v > a.v]) RETURN t.most AS most"""
HOT = PatternOn(name="hot", version=1, text=TEXT)
WHO = ("x", "y", "z")
MOST = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("limits"), st.dictionaries(st.sampled_from(WHO), MOST)),
        st.tuples(st.just("row"), st.tuples(st.sampled_from(WHO), st.none() | MOST)),
        st.tuples(st.just("gone"), st.none()),
        *[st.tuples(st.just("event"), st.tuples(st.sampled_from(WHO), st.integers(0, 5)))] * 3,
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def table_of(folder: Path, version: int, rows: dict[str, int]) -> TableVersion:
    path = folder / "rows.csv"
    path.write_text("\n".join(["who,most,note", *(f"{who},{most},{version}" for who, most in rows.items()), ""]))
    types: dict[str, ValueType] = {"most": "integer", "note": "integer"}
    return replace(keep_table(path, "csv", TableDeclaration(key=("who",), types=types)), name="limits", version=version)


def entries_of(steps: Sequence[tuple[str, Any]], folder: Path) -> list[Any]:
    records: list[Step] = [StreamOn(ORDERS), TableOn(table_of(folder, 1, {})), HOT]
    for number, (kind, what) in enumerate(steps, start=2):
        if kind == "limits":
            records.append(TableOn(table_of(folder, number, what)))
        elif kind == "row":
            who, most = what
            records.append(
                TableRow(name="limits", version=1, key=who, row=None if most is None else (who, most, number))
            )
        elif kind == "gone":
            records.append(TableOff("limits"))
        else:
            records.append([event(number, "A", who=what[0], v=what[1])])
    (entries,) = log_of(records).values()
    return [replace(one, stream="") if one.kind.value.startswith("table") else one for one in entries]


def naive(steps: Sequence[tuple[str, Any]]) -> list[tuple[str, int, int, int]]:
    """Pairs of events of a row, both after the place where the row had its present value."""
    limits: dict[str, int] = {}
    seen: dict[str, list[tuple[int, int]]] = {}
    found, is_known = [], True
    for number, (kind, what) in enumerate(steps, start=2):
        before = dict(limits)
        if kind == "limits":
            limits, is_known = dict(what), True
        elif kind == "gone":
            limits, is_known = {}, False
        elif kind == "row" and is_known:
            limits.pop(what[0], None)
            limits |= {} if what[1] is None else {what[0]: what[1]}
        elif kind == "event" and what[0] in limits:
            who, value = what
            first = seen.setdefault(who, [])
            found += [(who, limits[who], one, number) for one, then in first if value > then]
            if value > limits[who]:
                first.append((number, value))
        for who in WHO:
            if limits.get(who) != before.get(who):
                seen.pop(who, None)
    return found


def found_in(rows: Any) -> list[tuple[str, int, int, int]]:
    return [
        (one["row"]["who"], one["returns"]["most"], *(int(one["bindings"][alias][0][1:]) for alias in "ab"))
        for one in bodies(rows, "alert")
    ]


def applied(
    entries: Sequence[Any], cuts: set[int], saves: AbstractSet[int] = frozenset()
) -> tuple[ShardState, list[Any]]:
    """The state after entries in batches, and their rows. After ``saves``, another state is loaded from its bytes."""
    state, rows, first = ShardState(0), [], 0
    for end in sorted({*cuts, *saves, len(entries)}):
        rows += state.apply(entries[first:end])
        first = max(first, min(end, len(entries)))
        if end in saves:
            state = ShardState.load(state.dump(), files=TableFiles())
    return state, rows


TWICE_A_ROW: list[tuple[str, Any]] = [("limits", dict.fromkeys(WHO, 0)), *[("row", ("x", None))] * 2]
TWICE_A_ROW += [("event", ("z", 1)), ("event", ("z", 2)), ("event", ("y", 1))]
ONE_EACH: list[tuple[str, Any]] = [("limits", dict.fromkeys(WHO, 0)), *(("event", (who, 1)) for who in WHO)]


@given(steps=STEPS, cuts=st.sets(st.integers(1, 30)), saves=st.sets(st.integers(1, 30)))
@example(steps=TWICE_A_ROW, cuts={1, 8}, saves=set())
@example(steps=ONE_EACH, cuts={5, 6}, saves=set())
@settings(max_examples=200)
def test_partial_matches_of_a_row_begin_where_it_has_its_values(
    folder: Path, steps: list[tuple[str, Any]], cuts: set[int], saves: set[int]
) -> None:
    entries = entries_of(steps, folder)
    _, rows = applied(entries, cuts, saves)
    assert sorted(found_in(rows)) == sorted(naive(steps))
    alerts = bodies(rows, "alert")
    assert len({one["id"] for one in alerts}) == len(alerts)
    whole, again = applied(entries, set())
    assert [row.body for row in again if row.kind == "alert"] == [row.body for row in rows if row.kind == "alert"]
    cut, _ = applied(entries, cuts | saves)
    assert whole.dump() == cut.dump()  # not after loading, which gives traces dense numbers


def test_one_event_raises_an_alert_for_each_row_under_its_own_id(folder: Path) -> None:
    text = "PATTERN low FOR EACH ROW OF limits t EVENT A a [v > t.most] RETURN t.who AS who"
    ids = []
    for version, rows in ((1, {"x": 1, "y": 2}), (2, {"y": 2, "z": 3, "x": 10})):
        start: list[Step] = [StreamOn(ORDERS), TableOn(table_of(folder, version, rows))]
        (entries,) = log_of([*start, PatternOn(name="low", version=1, text=text), [event(5, "A", v=9)]]).values()
        alerts = bodies(ShardState(0).apply(entries), "alert")
        ids.append({one["row"]["who"]: one["id"] for one in alerts})
        assert all(one["returns"] == one["row"] for one in alerts)
    assert set(ids[0]) == {"x", "y"}
    assert set(ids[1]) == {"y", "z"}
    assert ids[0]["y"] == ids[1]["y"]
    assert len({*ids[0].values(), *ids[1].values()}) == 3


def test_many_alerts_are_written_as_a_few_are(folder: Path) -> None:
    text = "PATTERN low FOR EACH ROW OF limits t EVENT A a [v > t.most] RETURN t.most AS most"
    rows = {f"w{number}": number for number in range(30)}
    start: list[Step] = [
        StreamOn(ORDERS),
        TableOn(table_of(folder, 1, rows)),
        PatternOn(name="low", version=1, text=text),
    ]
    (few,) = log_of([*start, *([event(number, "A", v=number)] for number in range(1, 20))]).values()
    (many,) = log_of([*start, [event(number, "A", v=number) for number in range(1, 20)]]).values()
    found = [bodies(ShardState(0).apply(log), "alert") for log in (few, many)]
    one, other = (sorted(map(orjson.dumps, alerts)) for alerts in found)
    assert len(one) == sum(range(1, 20))
    assert one == other


def test_a_deadline_before_the_version_is_of_the_row_before_it(folder: Path) -> None:
    text = """PATTERN quiet FOR EACH ROW OF limits t
    EVENT SEQ(A a [who = t.who AND v > t.most], NOT B b [who = t.who]) WITHIN 5 s"""
    start: list[Step] = [
        StreamOn(ORDERS),
        TableOn(table_of(folder, 1, {"x": 1})),
        PatternOn(name="quiet", version=1, text=text),
        [event(10, "A", who="x", v=2)],
    ]
    tick, change = Tick(time_us=20_000_000, cause="clock"), TableOn(table_of(folder, 2, {"x": 3}))
    orders: list[tuple[list[Step], int]] = [([tick, change], 1), ([change, tick], 0)]
    for steps, count in orders:
        (entries,) = log_of([*start, *steps]).values()
        assert len(bodies(ShardState(0).apply(entries), "alert")) == count


def test_divided_shards_keep_the_partial_matches_of_their_keys(folder: Path) -> None:
    start: list[Step] = [StreamOn(ORDERS), TableOn(table_of(folder, 1, {"x": 1})), HOT]
    keys = [f"k{number}" for number in range(20)]
    (entries,) = log_of([*start, [event(1, "A", who="x", v=2, key=key) for key in keys]]).values()
    state = ShardState(0)
    state.apply(entries)
    alerts = []
    for part in state.split(1, 4):
        (more,) = log_of([[event(2, "A", who="x", v=3, key=key) for key in keys]]).values()
        alerts += bodies(part.apply([replace(one, position="9-1") for one in more]), "alert")
    assert sorted(one["key"] for one in alerts) == sorted(keys)


def test_a_version_that_passes_the_bound_of_rows_suspends_the_pattern_where_it_takes_effect(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfa.row_bounds.MOST_ROWS", 2)
    monkeypatch.setattr("nfa.row_bounds.MOST_ROWS_AT_ONCE", 1)
    steps = [("limits", {"x": 0}), ("event", ("x", 1)), ("limits", dict.fromkeys(WHO, 0)), ("event", ("x", 2))]
    (found,) = bodies(ShardState(0).apply(entries_of(steps, folder)), "suspension")
    assert "has 3 rows; at most 2" in found["reason"]
