"""Operators that stop before their pause is reached in the log."""

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.entries import StoredEntry
from shards.rows import rows_of
from shards.state import ShardState
from shards.stops import stop_note
from streams import PatternOn, PatternPause, StreamDeclaration, StreamOn, encode_control
from tests.builders.shards import Step, event, log_of

PAIR = PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u)")
BESIDE = PatternOn(name="beside", version=1, text="PATTERN beside EVENT SEQ(A a, U u)", route="")
NEXT = PatternOn(name="pair", version=2, text="PATTERN pair EVENT SEQ(A a, U u, A b)")
PAUSE = PatternPause("pair")


def entries_of(steps: list[Step]) -> list[StoredEntry]:
    (log,) = log_of(steps).values()
    return [StoredEntry(position=one.position, kind=one.kind, stream=one.stream, body=one.body) for one in log]


def records_of(*records: Any) -> str:
    return orjson.dumps([["orders", one.KIND.value, encode_control(one).decode()] for one in records]).decode()


def events(first: int, number: int) -> list[Step]:
    return [[event(place, "AU"[place % 2])] for place in range(first, first + number)]


def alerts(rows: Any) -> list[tuple[str, str]]:
    found = [
        (one["pattern"], one["end"]) for one in map(orjson.loads, (row.body for row in rows if row.kind == "alert"))
    ]
    assert [row for row in rows if row.kind == "dead-letter"] == []
    return sorted(found)


START: list[Step] = [StreamOn(StreamDeclaration(name="orders")), PAIR, BESIDE]


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 16), st.sets(st.integers(0, 22), max_size=3), st.booleans())
def test_it_stops_there_as_if_its_pause_were_there_and_what_is_behind_did_not_concern_it(where, cuts, has_next):
    behind: list[Step] = [*events(12, 4), *([NEXT] if has_next else []), *events(16, 2)]
    log = entries_of([*START, *events(3, 9), *behind, PAUSE, *events(18, 2)])
    until = log[[one.kind for one in log].index("pattern-pause")].position
    others = [one for place, one in enumerate(log) if place < where or one.kind == "events"]
    moved = [*others[:where], None, *others[where:]]
    plain = ShardState(0)
    expected = []
    for one in moved:
        if one is None:
            plain._control(PAUSE, log[where])
            continue
        expected += rows_of(plain.advance([one]))
    note = stop_note(until, records_of(PAUSE), log[where])
    given_entries = [*log[:where], note, *log[where:]]
    state, rows, done = ShardState(0), [], 0
    for border in sorted({*cuts, len(given_entries)}):
        part = given_entries[done:border]
        rows += rows_of(state.advance(part))
        done = max(done, border)
        state = ShardState.load(state.dump())
        is_between = where < done and state.position != log[-1].position and bool(state.stops)
        assert not is_between or state.stops == {until}
        if is_between and done < len(given_entries):  # the note once more, as a part of a later read
            rows += rows_of(state.advance([stop_note(until, records_of(PAUSE), given_entries[done])]))
    assert alerts(rows) == alerts(expected)
    assert state.stops == frozenset()
    assert {name for name, _ in alerts(rows)} >= {"beside"}


def test_a_pause_that_is_past_stops_nothing_once_more():
    log = entries_of([*START, *events(3, 2), PAUSE, PAIR, *events(6, 2)])
    until = log[5].position
    state = ShardState(0)
    state.advance(log[:7])
    rows = rows_of(state.advance([stop_note(until, records_of(PAUSE), log[7]), *log[7:]]))
    assert [name for name, _ in alerts(rows)] == ["beside", "beside", "pair"]
