"""Joins with a bounded memory find what they find without one, in the same order, however they are cut and saved."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import RANGE, JoinBody, JoinRefused, JoinRun, explain, merged_id, read_join
from joins.paging import pager
from streams import Event, EventBatch, SpilledFiles, StateLost

CLOSINGS = st.lists(st.sampled_from(["unique", "clustered", "end", "end", {"type": "Last"}]), max_size=2)
WINDOWS = st.sampled_from(["none", "2 us", "7 us", {"last": 2}])
SMALL = {"_LEAST_BLOCK": 1, "_LEAST_PART": 1}
RETRACTIONS = st.sampled_from(["take", "take", "4 us", "30 us"])
MARKS = ["", "", "", "", "", "", ".last", ".last", ".closed", ".closed", RANGE]
REVOCABLE = ["", "", ".revocable", ".revocable", ".revocable", ".revocable.last", ".closed", *[".retracted"] * 3, RANGE]


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    """As few rows as there are in these tests still make several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in SMALL.items():
            patch.setattr(pager, name, size)
        yield


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Joins of every form; ``memory`` is what may let them be without bounds."""
    aliases = ["o", "p", "q", "r"][: draw(st.integers(2, 4))]
    outer = draw(st.lists(st.sampled_from(aliases), unique=True))
    may_lack = outer if len(aliases) > 2 else []
    inputs = [
        {
            "stream": "s",
            "as": alias,
            "window": draw(WINDOWS),
            "closed_by": draw(CLOSINGS),
            "retractions": "event" if may_lack else draw(RETRACTIONS),
        }
        for alias in aliases
    ]
    required = [one for one in inputs if one["as"] not in may_lack]
    finishes = any(one["closed_by"] for one in required) or all(one["closed_by"] for one in inputs)
    emit = draw(st.sampled_from(["each", "on_close"])) if finishes else "each"
    columns = {alias: f"id({alias})" for alias in aliases}
    totals = {"n": "count(o)", "sum": "sum(p.v)", "first": "first(p.v)", "last": "last(o.v)", "few": "distinct(p.v)"}
    columns |= {f"why_{alias}": f"decided_by({alias})" for alias in outer}
    returned = columns if emit == "each" else totals
    return {"inputs": inputs, "emit": emit, "outer": outer, "return": returned}


def changed_windows(windows: list[Any], document: dict[str, Any], rows: int) -> JoinBody:
    """Another version of a join."""
    inputs = [one | {"window": window} for one, window in zip(document["inputs"], windows, strict=False)]
    return read_join({**document, "inputs": inputs, "memory": {"rows": rows % 3 + 1, "spill": True}})


def steps_with(keys: str, marks: list[str]) -> Any:
    """When, of which input, of which key and what comes."""
    return st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 11), st.sampled_from(keys), st.sampled_from(marks)), max_size=40
    )


STEPS = st.one_of(steps_with("1234567", MARKS), steps_with("1234", REVOCABLE))


def merged(document: dict[str, Any], steps: list[tuple[int, int, str, str]]) -> list[Event]:
    """Merged events; what is retracted came before in the same input, if anything has."""
    aliases, time, events = [one["as"] for one in document["inputs"]], 0, []
    came: dict[tuple[int, str], list[str]] = {}
    is_taken = all(one.get("retractions") != "event" for one in document["inputs"])
    for place, (step, chosen, key, drawn) in enumerate(steps):
        mark = drawn if is_taken else drawn.replace(".revocable", "").replace(".retracted", "")
        time, number = time + step, chosen % len(aliases)
        data: dict[str, Any] = {} if mark == ".closed" else {"type": "T", "data": {"v": place % 5}}
        if mark == RANGE:
            data = {"from": int(key) - place % 3, "to": int(key)}
        own = came.setdefault((number, key), [])
        if mark == ".retracted":
            data["data"] = {"retracts": own[place * 7 % len(own)] if own else "nothing"}
        elif mark.startswith(".revocable"):
            own.append(f"e{place}")
        identity = merged_id(number, place, f"e{place}")
        events.append(Event(id=identity, type=f"{aliases[number]}{mark}", time_us=time, key=key, data=data))
    return events


def found(outputs: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """What a join said: its events, those with the ends of traces among them, and what was broken."""
    return (
        [event for output in outputs for event in output.events.to_events()],
        [
            (kind, time, key, identity)
            for output in outputs
            for kind, time, key, identity in zip(
                output.passed_on.columns.column("type").to_pylist(),
                output.passed_on.time_us.tolist(),
                output.passed_on.key_hashes.tolist(),
                output.passed_on.columns.column("id").to_pylist(),
                strict=True,
            )
        ],
        [(*output.broken, *output.late_retractions) for output in outputs if output.broken or output.late_retractions],
    )


FIGURES = ("revocable", "remembered", "open_totals")


@settings(max_examples=150, deadline=None)
@given(
    documents(),
    STEPS,
    st.integers(1, 6),
    st.sets(st.integers(0, 40)),
    st.sets(st.integers(0, 40)),
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.lists(WINDOWS, min_size=4, max_size=4)),
)
def test_a_bounded_memory_changes_nothing(
    document: dict[str, Any],
    steps: list[tuple[int, int, str, str]],
    rows: int,
    cuts: set[int],
    saves: set[int],
    changes: tuple[int, int, list[Any]],
) -> None:
    dropped, changed, windows = changes
    small, files = read_join({**document, "memory": {"rows": rows, "spill": True}}), SpilledFiles()
    plain, paged = JoinRun(replace(small, memory_rows=None), "j", 1), JoinRun(small, "j", 1, files)
    events = merged(document, steps)
    borders = sorted({0, len(events), *(cut for cut in cuts | saves if cut < len(events))})
    expected, got = [], []
    for first, last in pairwise(borders):
        if first == dropped:  # as another shard takes a part of the keys
            for run in (plain, paged):
                keys = run.keys()
                run.drop(keys % np.uint64(2) == 0, keys)
        batch = EventBatch.from_events(events[first:last])
        expected.append(plain.process(batch))
        got.append(paged.process(batch))
        assert paged._join.stored <= max(rows, 3)
        until_us = events[last - 1].time_us + 1
        expected.append(plain.advance_time(until_us))
        got.append(paged.advance_time(until_us))
        if first == changed:
            other = changed_windows(windows, document, rows)
            expected.append(plain.change(replace(other, memory_rows=None), 2))
            got.append(paged.change(other, 2))
            small = other
        if first in saves:
            saved = paged.dump()
            paged = JoinRun(small, "j", paged.version, files)
            paged.load(*saved)
        assert set(plain.keys().tolist()) <= set(paged.keys().tolist())
    expected.append(plain.finish())
    got.append(paged.finish())
    assert found(got) == found(expected)
    counts = paged.measures()
    assert counts["stored"] == 0
    assert [counts.get(name) for name in FIGURES] == [plain.measures().get(name) for name in FIGURES]


ENDLESS: dict[str, Any] = {
    "inputs": [{"stream": "s", "as": "o"}, {"stream": "s", "as": "p"}],
    "return": {"o": "id(o)", "p": "id(p)"},
    "memory": {"rows": 8, "spill": True},
}


def given_to(run: JoinRun, steps: list[tuple[int, int, str, str]], document: dict[str, Any] = ENDLESS) -> list[Any]:
    """Events one by one."""
    return [run.process(EventBatch.from_events([event])) for event in merged(document, steps)]


def keys_of(count: int, number: int = 0) -> list[tuple[int, int, str, str]]:
    """An event of each of some keys."""
    return [(1, number, f"k{place}", "") for place in range(count)]


def test_what_is_on_disk_comes_back_with_an_event_of_its_key(tmp_path: Path) -> None:
    run = JoinRun(read_join(ENDLESS), "j", 1, SpilledFiles(tmp_path))
    given_to(run, keys_of(100))
    counts = run.measures()
    assert (counts["stored"], counts["keys"], counts["spill_reads"]) == (100, 100, 0)
    assert counts["spilled"] == counts["spill_writes"] >= 92
    assert counts["spilled_bytes"] == sum(path.stat().st_size for path in tmp_path.iterdir())
    batch = EventBatch.from_events([Event(id=merged_id(1, 0, "x"), type="p", time_us=500, key="k3", data={})])
    (event,) = run.process(batch).events.to_events()
    assert event.data == {"o": "e3", "p": "x"}
    assert run.measures()["spill_reads"] == 1


def test_what_is_saved_is_about_what_is_in_memory() -> None:
    sizes = {}
    for rows in (8, 1_000):
        run = JoinRun(read_join({**ENDLESS, "memory": {"rows": rows, "spill": True}}), "j", 1)
        for first in range(0, 400, 40):
            events = [
                Event(
                    id=merged_id(0, n, ""),
                    type="o",
                    time_us=n,
                    key=f"k{n // 4}",
                    data={"type": "T", "data": {"v": "x" * 300}},
                )
                for n in range(first, first + 40)
            ]
            run.process(EventBatch.from_events(events))
        sizes[rows] = sum(map(len, run.dump()[1].values()))
    assert sizes[1_000] > 400 * 300
    assert sizes[8] < sizes[1_000] / 8


def test_a_block_whose_rows_have_left_their_windows_is_not_read_again(tmp_path: Path) -> None:
    document = {**ENDLESS, "window": "50 us"}
    run = JoinRun(read_join(document), "j", 1, SpilledFiles(tmp_path))
    given_to(run, keys_of(400), document)
    counts = run.measures()
    assert counts["spill_reads"] == 0
    assert counts["stored"] <= 50 + 8
    assert counts["expired"] >= 340
    run.advance_time(10_000)
    run.advance_time(10_001)
    counts = run.measures()
    assert (counts["stored"], counts["keys"], counts["spilled_bytes"], counts["spill_reads"]) == (0, 0, 0, 0)


def test_a_scratch_folder_holds_only_files_that_are_needed() -> None:
    files = SpilledFiles()
    run = JoinRun(read_join(ENDLESS), "j", 1, files)
    given_to(run, [*keys_of(50), *keys_of(50, 1)] * 3)
    assert {path.name for path in files.folder.iterdir()} == set(run.rows.files)
    run.finish()
    assert list(files.folder.iterdir()) == []


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    run = JoinRun(read_join(ENDLESS), "j", 1, SpilledFiles(tmp_path))
    given_to(run, keys_of(40))
    head, sections = run.dump()
    name = run.rows.files[0]
    (tmp_path / name).rename(tmp_path / "away")
    again = JoinRun(read_join(ENDLESS), "j", 1, SpilledFiles(tmp_path))
    with pytest.raises(StateLost, match=f"{name} of spilled rows is missing"):
        again.load(head, sections)
    with pytest.raises(StateLost, match=f"{name} of spilled rows cannot be read"):
        run.rows.verify()


def test_a_damaged_file_is_found_by_its_checksum(tmp_path: Path) -> None:
    run = JoinRun(read_join(ENDLESS), "j", 1, SpilledFiles(tmp_path))
    given_to(run, keys_of(40))
    saved, path = run.dump(), tmp_path / run.rows.files[0]
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    again = JoinRun(read_join(ENDLESS), "j", 1, SpilledFiles(tmp_path))
    again.load(*saved)
    with pytest.raises(StateLost, match=f"{path.name} of spilled rows is damaged"):
        again.rows.verify()
    with pytest.raises(StateLost, match=f"{path.name} of spilled rows is damaged"):
        given_to(again, keys_of(40, 1))
    path.write_bytes(bytes(content) + b"more")
    with pytest.raises(StateLost, match=f"{len(content) + 4} bytes, not {len(content)}"):
        again.load(*saved)


def test_a_join_whose_rows_are_gone_says_so_once_and_stops() -> None:
    run = JoinRun(read_join(ENDLESS), "j", 1)
    run.lose("the file x is gone")
    said = [output.lost for output in given_to(run, keys_of(3))]
    again = JoinRun(read_join(ENDLESS), "j", 1)
    again.load(*run.dump())
    outputs = [*given_to(again, keys_of(3, 1)), again.advance_time(9), again.finish()]
    assert said == ["the file x is gone", None, None]
    assert [output.lost for output in outputs] == [None] * 5
    assert all(not len(output.events) for output in outputs)
    assert again.has_stopped


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"rows": 10}, "'memory' of a join needs 'spill: true'"),
        ({"rows": 10, "spill": False}, "'memory' of a join needs 'spill: true'"),
        ({"rows": 0, "spill": True}, "write {rows: 2000000, spill: true}"),
        ({"rows": True, "spill": True}, "write {rows: 2000000, spill: true}"),
        ("2 GB", "write {rows: 2000000, spill: true}"),
        ({"rows": 1, "spill": True, "folder": "/x"}, "'memory' of a join has folder; it takes rows, spill"),
    ],
)
def test_another_memory_is_refused(memory: object, message: str) -> None:
    with pytest.raises(JoinRefused, match=re.escape(message)):
        read_join({**ENDLESS, "memory": memory})


def test_without_memory_a_join_that_nothing_bounds_is_refused() -> None:
    document = {name: member for name, member in ENDLESS.items() if name != "memory"}
    with pytest.raises(JoinRefused, match="or give the join a 'memory' with 'spill: true'"):
        read_join(document)
    assert read_join(ENDLESS).memory_rows == 8


def test_it_is_explained() -> None:
    algorithm, memory, kept, *_ = explain(read_join(ENDLESS))
    assert algorithm == "Join: there are no windows, and no input finishes its keys, so no event is dropped."
    assert memory.startswith("At most 8 events of a shard are in memory.")
    assert kept == "o: events are kept for ever; it finishes no key."
