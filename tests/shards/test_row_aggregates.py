"""Aggregates that are for each row of a table: the groups of a naive interpreter, and rows that change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import MOST_ROWS_AT_ONCE, TooManyRows
from shards import InlineShards, OperatorRefused
from shards.kinds.aggregates import AggregateKind
from streams import Event, EventBatch, OperatorOn, StreamDeclaration, StreamOn, TableOn, TableRow, format_time
from streams.tables import Lookup, TableDeclaration, TableRefused, Tables, TableVersion, keep_table
from streams.tables.form import ValueType

SECOND_US = 1_000_000
KIND = AggregateKind()
SOURCE = StreamDeclaration(name="x", key="data.user")
DOCUMENT: Mapping[str, Any] = {
    "name": "made",
    "of": "x",
    "where": "type = 'A'",
    "by": ["region", "user"],
    "for_each_row_of": "watched",
    "values": {"n": "count()", "s": "sum(v)"},
    "window": {"row": "within", "most": "10 s"},
    "having": "n >= row.most OR s > row.`most s`",
    "clear": True,
}
VALUES = st.sampled_from(["", "", "a", "b", "7"])
MOST = st.none() | st.integers(1, 3)
WITHIN = st.sampled_from([None, "2 s", "5 s", "10 s", "1 min"])
ROWS = st.lists(st.tuples(VALUES, VALUES, MOST, MOST, WITHIN), max_size=9)
EVENTS = st.lists(
    st.tuples(st.sampled_from("AAB"), st.sampled_from("ab7"), st.sampled_from(["a", "b", 7, None]), st.integers(0, 4)),
    max_size=30,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def table_of(folder: Path, rows: Sequence[Sequence[Any]], version: int = 1) -> TableVersion:
    path = folder / "rows.csv"
    lines = (
        ",".join("" if one is None else str(one) for one in (f"q{n}", *row, *[None] * (5 - len(row))))
        for n, row in enumerate(rows)
    )
    path.write_text("\n".join(["id,region,user,most,most s,within", *lines, ""]))
    types: dict[str, ValueType] = {
        "region": "text",
        "user": "text",
        "most": "integer",
        "most s": "integer",
        "within": "text",
    }
    return replace(keep_table(path, "csv", TableDeclaration(key=("id",), types=types)), name="watched", version=version)


def begun(folder: Path, rows: Sequence[Sequence[Any]], shards: int, document: Mapping[str, Any]) -> InlineShards:
    run = InlineShards(shards)
    definition = replace(KIND.read(document, lambda _: SOURCE), version=1)
    for name in ("x", "made.inputs", "made"):
        run.append_record(name, StreamOn(SOURCE if name == "x" else StreamDeclaration(name=name, derived=True)))
    run.append_record("", TableOn(table_of(folder, rows)))
    for one in (*KIND.parts(definition, lambda _: SOURCE), definition):
        run.append_record(one.inputs[0].stream, OperatorOn(one))
    return run


def events_of(made: Sequence[tuple[str, str, Any, int]], first: int = 0) -> list[Event]:
    found, seconds = [], 100 * first
    for number, (kind, user, region, pause) in enumerate(made, first):
        seconds += pause
        data = {"user": user, "region": region, "v": number % 3}
        found.append(Event(id=f"e{number}", type=kind, time_us=seconds * SECOND_US, key=user, data=data))
    return found


def derived(blocks: Any) -> list[tuple[Any, ...]]:
    bodies = [orjson.loads(row.body) for block in blocks for row in block if row.kind == "derived"]
    for one in bodies:
        one["data"] |= {
            name: [shown["id"] for shown in one["data"][name]] for name in ("events",) if name in one["data"]
        }
    return sorted((one["time"], one["key"], one["type"], *one["data"].values()) for one in bodies)


WHERE: Mapping[str, Callable[[Event], bool]] = {
    "type = 'A'": lambda one: one.type == "A",
    "v > 0 AND type IN ('A', 'B')": lambda one: one.data["v"] > 0,
    "region IS NOT NULL OR type = 'B'": lambda one: one.data["region"] is not None or one.type == "B",
}


def naive(
    rows: Sequence[Sequence[Any]],
    events: Sequence[Event],
    *,
    one_window: bool,
    where: str = "type = 'A'",
    most: int = 0,
) -> list[tuple[Any, ...]]:
    """For each row the events with its values, evaluated after each event and at each expiry; ``most`` are shown."""
    found = []
    for number, (region, user, most_n, most_s, within) in enumerate(rows):
        size_us = 10 * SECOND_US if one_window else {"2 s": 2, "5 s": 5}.get(within, 10) * SECOND_US
        mine = [
            one
            for one in events
            if WHERE[where](one) and region in ("", one.data["region"]) and user in ("", one.data["user"])
        ]
        steps: list[tuple[int, int, Event | None]] = [(one.time_us, place, one) for place, one in enumerate(mine)]
        steps += [(one.time_us + size_us, -1, None) for one in mine]
        end_us, held, was_true = max((one.time_us for one in events), default=0), list[Event](), False
        for time_us, _, event in sorted(steps, key=lambda step: step[:2]):
            if time_us > end_us:
                break
            held = [one for one in held if time_us - one.time_us < size_us] + ([event] if event else [])
            count, total = len(held), sum(one.data["v"] for one in held)
            is_true = bool(held) and (
                (most_n is not None and count >= most_n) or (most_s is not None and total > most_s)
            )
            if is_true != was_true:
                name = "made" if is_true else "made.cleared"
                own = (
                    f"q{number}",
                    region or None,
                    user or None,
                    *([] if one_window else [within]),
                    count,
                    total if held else None,
                    *([[one.id for one in held[-most:]]] if most else []),
                )
                found.append((format_time(time_us), own[0], name, *own))
            was_true = is_true
    return sorted(found)


@settings(max_examples=60, deadline=None)
@given(
    ROWS,
    EVENTS,
    st.sampled_from([1, 4]),
    st.integers(1, 30),
    st.booleans(),
    st.sampled_from([*WHERE]),
    st.sampled_from([0, 2]),
)
def test_rows_have_the_groups_of_a_naive_interpreter(
    folder: Path, rows: list[Any], made: list[Any], shards: int, size: int, one_window: bool, where: str, most: int
) -> None:
    document = (
        {**DOCUMENT, "where": where} | ({"window": "10 s"} if one_window else {}) | ({"events": most} if most else {})
    )
    run, blocks, events = begun(folder, rows, shards, document), [], events_of(made)
    for begin in range(0, len(events), size):
        run.feed("x", EventBatch.from_events(events[begin : begin + size]))
        blocks += run.settle()
    assert derived([*blocks, *run.finish()]) == naive(rows, events, one_window=one_window, where=where, most=most)


def test_a_change_of_a_row_keeps_its_events_unless_they_are_others(folder: Path) -> None:
    run = begun(folder, [("a", "", 9, None)], 1, DOCUMENT)

    def fed(second: int, *row: Any, region: str = "a") -> list[tuple[Any, ...]]:
        if row:
            run.append_record("", TableRow(name="watched", version=1, key="q0", row=("q0", *row, None)))
        data = {"region": region, "v": 0}
        run.feed(
            "x",
            EventBatch.from_events([Event(id=f"e{second}", type="A", time_us=second * SECOND_US, key="u", data=data)]),
        )
        return [(kind, region, n) for _, _, kind, _, region, _, _, n, _ in derived(run.settle())]

    assert fed(0) == fed(1) == []
    assert fed(2, "a", None, 2, None) == [("made", "a", 2)]  # another limit, and the same events
    assert fed(3, "b", None, 1, None) == [("made.cleared", "a", 3)]  # another region, whose events begin now
    assert fed(4, region="b") == []
    assert fed(5) == [("made", "b", 1)]
    assert fed(20) == [("made.cleared", "b", 0)]


def test_its_table_is_known_with_the_columns_that_it_reads() -> None:
    definition = KIND.read(DOCUMENT, lambda _: SOURCE)
    assert set(KIND.lookups(definition)) == {
        Lookup("watched", None, None),
        *(Lookup("watched", name, 1) for name in ("region", "user", "most", "most s", "within")),
    }
    (part,) = KIND.parts(definition, lambda _: SOURCE)
    assert part.inputs[0].stream == "x"
    assert any("rows of watched" in one for one in KIND.explain(definition))


def test_a_window_that_is_no_duration_is_refused(folder: Path) -> None:
    tables = Tables().with_version(table_of(folder, [("a", "", 1, None, "soon")]))
    with pytest.raises(TableRefused, match="'q0' of 'watched' has in within 'soon'"):
        KIND.require_rows(KIND.read(DOCUMENT, lambda _: SOURCE), tables)


def test_too_many_rows_at_once_are_refused(folder: Path) -> None:
    definition = KIND.read(DOCUMENT, lambda _: SOURCE)
    rows = [("a", "", 1, None)] * MOST_ROWS_AT_ONCE
    KIND.require_rows(definition, Tables().with_version(table_of(folder, rows)))
    with pytest.raises(TooManyRows, match="may be in 1,001 of them"):
        KIND.require_rows(definition, Tables().with_version(table_of(folder, [*rows, ("", "b", 1, None)])))


def test_windows_of_too_many_lengths_are_refused(folder: Path) -> None:
    definition = KIND.read(DOCUMENT, lambda _: SOURCE)
    rows = [("a", "", 1, None, f"{second} s") for second in range(1, 102)]
    KIND.require_rows(definition, Tables().with_version(table_of(folder, rows[:100])))
    with pytest.raises(TooManyRows, match="windows of 101 different lengths in within; at most 100"):
        KIND.require_rows(definition, Tables().with_version(table_of(folder, rows)))


def test_many_rows_are_met_in_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shards.kinds.aggregates.row_groups._PAIRS_AT_ONCE", 8)
    rows: list[Any] = [("a", "", 2, None, "5 s")] * 5
    run, events = begun(folder, rows, 2, DOCUMENT), events_of([("A", "b", "a", 1)] * 7)
    run.feed("x", EventBatch.from_events(events))
    assert derived([*run.settle(), *run.finish()]) == naive(rows, events, one_window=False)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"by": None}, "needs 'by'"),
        ({"by": ["row"]}, "row and within cannot"),
        ({"window": {"last": 3}}, "window of time"),
        ({"window": "transaction"}, "window of time"),
        ({"ask": {"by": ["user"]}}, "two aggregates"),
        ({"having": "all(n) > 1"}, "all(...)"),
        ({"by": ["within"]}, "row and within cannot"),
        ({"for_each_row_of": None}, "'for_each_row_of'"),
        ({"for_each_row_of": 7}, "'for_each_row_of'"),
        ({"values": {"row": "count()"}, "having": "row.most > 1"}, "a value cannot have the name"),
    ],
)
def test_what_has_no_meaning_with_rows_is_refused(changes: dict[str, Any], part: str) -> None:
    with pytest.raises(OperatorRefused) as refused:
        KIND.read({**DOCUMENT, **changes}, lambda _: SOURCE)
    assert part in refused.value.message
