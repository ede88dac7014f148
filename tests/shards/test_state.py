from dataclasses import replace
from unittest.mock import Mock

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Overflow
from nfa.language import parsing
from nfa.pattern_texts import parse_pattern
from shards.entries import StoredEntry
from shards.errors import SavedStateError
from shards.state import ShardState
from streams import (
    EARLIEST_US,
    LATEST_US,
    ConstraintsOn,
    EventBatch,
    LogEntry,
    PatternOff,
    PatternOn,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    WorkBudget,
    parse_time,
)
from tests.builders.shards import Step, bodies, event, log_of, run_inline

STREAM = StreamOn(StreamDeclaration(name="orders", end_events=("End",)))
PAIR = PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u [x > 3])")
EITHER = ConstraintsOn(name="rules", version=1, document={"exclusive": [["L", "U"]]})
NEVER = PatternOn(name="never", version=1, text="PATTERN never EVENT SEQ(A a, NOT X)")
QUOTED = ConstraintsOn(name="rules", version=2, document={"prior": [["A", "L"]]})


def rows_of(*steps):
    return run_inline(log_of(steps))


def alerts_of(*steps):
    return [alert["bindings"] for alert in bodies(rows_of(*steps), "alert")]


def test_an_alert_says_what_matched_and_why():
    rows = rows_of(STREAM, PAIR, [event(1, "A"), event(2, "U", x=5)])
    (alert,) = bodies(rows, "alert")
    assert alert == {
        "type": "alert",
        "id": rows[0].id,
        "stream": "orders",
        "pattern": "pair",
        "version": 1,
        "key": "k",
        "start": "1970-01-01T00:00:01.000000Z",
        "end": "1970-01-01T00:00:02.000000Z",
        "detected_at": "1970-01-01T00:00:02.000000Z",
        "bindings": {"a": ["e1"], "u": ["e2"]},
        "returns": {},
        "why": "e1 is A a; e2 is U u [x > 3]",
    }
    assert (rows[0].kind, rows[0].stream, rows[0].position, rows[0].shard) == ("alert", "orders", "1-3", 0)


def test_a_shard_reads_the_text_of_a_pattern_once(monkeypatch):
    parse_pattern.cache_clear()
    readings = Mock(side_effect=parsing.parse_tree)
    monkeypatch.setattr(parsing, "parse_tree", readings)
    assert len(alerts_of(STREAM, PAIR, [event(1, "A"), event(2, "U", x=5)])) == 1
    assert readings.call_count == 1


def test_an_alert_tells_the_step_of_each_alias_and_all_where_alternatives_share_it():
    text = "PATTERN either EVENT SEQ(OR(A x [v > 1], B x), C? c, D+ d)"
    either = PatternOn(name="either", version=1, text=text)
    batch = [event(1, "A", v=2), event(2, "D"), event(3, "D")]
    alerts = bodies(rows_of(STREAM, either, batch), "alert")
    assert sorted(alert["why"] for alert in alerts) == [
        "e1 is A x [v > 1] or B x; e2 is D d",
        "e1 is A x [v > 1] or B x; e2, e3 are D d",
        "e1 is A x [v > 1] or B x; e3 is D d",
    ]


def test_an_alert_has_its_columns_and_the_time_at_which_it_was_decided():
    text = "PATTERN late EVENT SEQ(A a, NOT B) WITHIN 5 s RETURN a.v AS v, a.w AS w"
    rows = rows_of(
        STREAM, PatternOn(name="late", version=1, text=text), [event(1, "A", v=2.5)], [event(5, "X")], [event(6, "X")]
    )
    (alert,) = bodies(rows, "alert")
    assert (alert["end"], alert["detected_at"]) == ("1970-01-01T00:00:01.000000Z", "1970-01-01T00:00:06.000000Z")
    assert alert["returns"] == {"v": 2.5, "w": None}
    assert rows[0].position == "1-5"


TIMED = PatternOn(name="timed", version=1, text="PATTERN timed EVENT SEQ(A a, B b, C c) WITHIN 5 s EMIT TIMEOUTS")


def test_a_timeout_tells_what_is_missing_since_when():
    rows = rows_of(STREAM, TIMED, [event(1, "A"), event(2, "B")], [event(9, "X")])
    assert [row.kind for row in rows] == ["timeout"]
    (timeout,) = bodies(rows, "timeout")
    assert timeout == {
        "id": rows[0].id,
        "stream": "orders",
        "pattern": "timed",
        "version": 1,
        "key": "k",
        "start": "1970-01-01T00:00:01.000000Z",
        "due": "1970-01-01T00:00:06.000000Z",
        "bindings": {"a": ["e1"], "b": ["e2"]},
        "missing": ["c"],
    }


def test_equal_times_are_ordered_unless_the_stream_says_otherwise():
    batch = [event(1, "A"), replace(event(2, "U", x=5), time_us=1_000_000), event(3, "X")]
    assert alerts_of(STREAM, PAIR, batch) == [{"a": ["e1"], "u": ["e2"]}]
    unordered = StreamOn(StreamDeclaration(name="orders", ties="simultaneous"))
    assert alerts_of(unordered, PAIR, batch) == []


def test_keys_that_contain_the_streams_look_at_finer_traces():
    stream = StreamOn(StreamDeclaration(name="orders", key="data.order", end_events=("End",)))
    finer = PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u) WHERE [order, w]")
    batch = [event(1, "A", w=1), event(2, "A", w=2), event(3, "U", w=2), event(4, "U")]
    assert alerts_of(stream, finer, batch) == [{"a": ["e2"], "u": ["e3"]}]


def test_partial_matches_beyond_the_limit_become_a_dead_letter(monkeypatch):
    loss = Overflow(
        pattern="pair", version=1, key="k", event_id="e1", event_type="A", time_us=1_000_000, dropped=2, runs=3
    )
    monkeypatch.setattr("nfa.MatchOutput.overflows", lambda _: [loss, loss])
    letters = bodies(rows_of(STREAM, PAIR, [event(1, "A"), event(2, "U", x=5)]), "dead-letter")
    assert [letter["code"] for letter in letters] == ["match-limit", "run-limit"]
    assert len({letter["id"] for letter in letters}) == 2
    assert letters[0]["reason"].startswith("4 matches of the pattern 'pair'")
    assert letters[1]["reason"].startswith("6 partial matches of the pattern 'pair' (version 1) in the trace 'k'")


def test_matches_beyond_the_limit_become_a_dead_letter():
    pair = PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, B b)")
    batch = [*(event(number, "A") for number in range(1, 10_501)), event(10_501, "B"), event(10_502, "B", "m")]
    log = log_of([STREAM, pair, batch])
    rows = run_inline(log)
    assert len(bodies(rows, "alert")) == 10_000
    (letter,) = bodies(rows, "dead-letter")
    assert {name: value for name, value in letter.items() if name != "reason"} == {
        "id": rows[-1].id,
        "stream": "orders",
        "shard": 0,
        "position": "1-3",
        "kind": "events",
        "size_bytes": len(log[0][-1].body),
        "code": "match-limit",
        "pattern": "pair",
        "version": 1,
        "key": "k",
        "event_id": "e10501",
        "event_type": "B",
    }
    assert letter["reason"].startswith(
        "500 matches of the pattern 'pair' (version 1) in the trace 'k' at the event 'e10501' of type 'B' were beyond "
        "the limit of 10,000"
    )
    assert bodies(run_inline(log), "dead-letter") == [letter]


def test_a_trace_that_costs_too_much_is_given_up_with_a_dead_letter():
    text = "PATTERN rising EVENT SEQ(A{3} a [x > coalesce(prev(x), -1)], B b)"
    rising = PatternOn(name="rising", version=1, text=text, budget=WorkBudget(per_event=10, per_trace=500))
    events = [event(number, "A", x=number) for number in range(1, 1_000)]
    log = log_of([STREAM, rising, PAIR, events, [event(1_000, "U", x=5), event(1_001, "B")]])
    rows = run_inline(log)
    (letter,) = bodies(rows, "dead-letter")
    assert letter["code"] == "work-limit"
    assert letter["reason"].startswith("the pattern 'rising' (version 1) in the trace 'k' at the event 'e")
    assert "was given up" in letter["reason"]
    named = {name: letter[name] for name in ("pattern", "version", "key", "event_type")}
    assert named == {"pattern": "rising", "version": 1, "key": "k", "event_type": "A"}
    assert f"at the event {letter['event_id']!r}" in letter["reason"]
    assert 500 < letter["work"] < 1_000
    assert {alert["pattern"] for alert in bodies(rows, "alert")} == {"pair"}
    assert bodies(run_inline(log), "dead-letter") == [letter]


def test_rows_of_overflow_of_one_event_and_pattern_are_summed():
    either = PatternOn(name="pair", version=1, text="PATTERN pair EVENT OR(SEQ(A a, B b), SEQ(A a, B c))")
    other = PatternOn(name="other", version=1, text="PATTERN other EVENT SEQ(A a, B b)")
    batch = [*(event(number, "A") for number in range(1, 10_501)), event(10_501, "B"), event(10_502, "B")]
    letters = bodies(rows_of(STREAM, either, other, [*batch]), "dead-letter")
    assert len(letters) == len({letter["id"] for letter in letters}) == 4
    assert sorted(letter["reason"].split(" (")[0] for letter in letters) == [
        "11,000 matches of the pattern 'pair'",
        "11,000 matches of the pattern 'pair'",
        "500 matches of the pattern 'other'",
        "500 matches of the pattern 'other'",
    ]


def test_rows_of_one_thing_never_share_an_id():
    rows = rows_of(STREAM, EITHER, PAIR, [event(1, "A"), event(2, "A"), event(3, "U", x=5), event(4, "L", "m")])
    assert len(rows) == len({row.id for row in rows}) == 3


def test_a_pattern_sees_only_what_follows_it():
    assert alerts_of(STREAM, [event(1, "A")], PAIR, [event(2, "A"), event(3, "U", x=5)]) == [{"a": ["e2"], "u": ["e3"]}]


def test_a_pattern_that_is_off_sees_nothing():
    second = PatternOn(name="single", version=1, text="PATTERN single EVENT U u")
    steps = (STREAM, PAIR, second, [event(1, "A")], PatternOff("pair"), [event(2, "U", x=5)])
    assert alerts_of(*steps) == [{"u": ["e2"]}]


def test_the_same_version_again_changes_nothing_and_a_new_one_starts_fresh():
    newer = PatternOn(name="pair", version=2, text=PAIR.text)
    before, after = [event(1, "A")], [event(2, "U", x=5)]
    assert alerts_of(STREAM, PAIR, before, PAIR, after) == [{"a": ["e1"], "u": ["e2"]}]
    assert alerts_of(STREAM, PAIR, before, newer, after) == []


def test_open_traces_keep_their_constraints_and_new_ones_take_the_newest():
    rows = rows_of(
        STREAM,
        EITHER,
        PAIR,
        [event(1, "A", "old")],
        QUOTED,
        [event(2, "L", "old"), event(3, "L", "new"), event(4, "X")],
    )
    assert [(ending["key"], ending["constraints"]) for ending in bodies(rows, "ending")] == [
        ("old", ["exclusive(L, U)"]),
        ("new", ["prior(A, L)"]),
    ]


def test_constraints_that_no_trace_follows_leave_the_state():
    (log,) = log_of([STREAM, EITHER, PAIR, [event(1, "A")], QUOTED, [event(2, "End")]]).values()
    state = ShardState(0)
    state.apply(log[:-1])
    assert b"exclusive" in state.dump()
    state.apply(log)
    assert b"exclusive" not in state.dump()


def test_streams_do_not_mix():
    other = StreamOn(StreamDeclaration(name="other"))
    log = log_of([STREAM, PAIR, [event(1, "A")]])[0]
    for number, entry in enumerate(log_of([other, PAIR, [event(2, "U", x=5)]], stream="other")[0], start=10):
        log.append(LogEntry(position=f"1-{number}", kind=entry.kind, stream="other", body=entry.body))
    assert run_inline({0: log}) == []


def test_a_later_declaration_may_change_what_matching_does_not_read():
    wider = StreamOn(StreamDeclaration(name="orders", event_types=("A", "U", "End"), end_events=("End",)))
    assert alerts_of(STREAM, PAIR, [event(1, "A")], wider, [event(2, "U", x=5)]) == [{"a": ["e1"], "u": ["e2"]}]


def test_positions_are_compared_as_numbers():
    state = ShardState(0)
    (log,) = log_of(
        [STREAM, PAIR, *([event(n, "A", f"k{n}")] for n in range(10)), [event(11, "U", "k9", x=5)]]
    ).values()
    assert len(state.apply(log)) == 1
    assert state.position == "1-13"


@pytest.mark.parametrize("time_us", [EARLIEST_US, LATEST_US - 1])
def test_the_first_and_the_last_times_are_shown(time_us):
    first, second = replace(event(1, "A"), time_us=time_us), replace(event(2, "U", x=5), time_us=time_us + 1)
    (alert,) = bodies(rows_of(STREAM, PAIR, [first, second]), "alert")
    assert (parse_time(alert["start"]), parse_time(alert["end"])) == (time_us, time_us + 1)


# --- laws ---------------------------------------------------------------------------------------------------------

patterns = st.sampled_from(
    [
        PAIR,
        PatternOn(name="pair", version=2, text="PATTERN pair EVENT AND(A a, U u)"),
        PatternOn(name="triple", version=1, text="PATTERN triple EVENT SEQ(A a, OR(L l, U u), A b)"),
        TIMED,
        PatternOn(
            name="rich",
            version=1,
            text="PATTERN rich EVENT SEQ(A a, NEXT U u [x > a.x], NOT L) WITHIN 4 s LIMIT 2 RETURN u.x",
        ),
        PatternOn(name="pair", version=3, text=PAIR.text, is_guarded=False),
        NEVER,
        PatternOff("pair"),
        EITHER,
        QUOTED,
        ConstraintsOn(name="rules", version=4, document={"prior": [["X", "L"]], "response": [["A", "U"]]}),
        ConstraintsOn(name="rules", version=5, document={"prior": [["X", "L"]], "settings": {"prune": "shadow"}}),
    ]
)
happenings = st.tuples(st.sampled_from(["A", "U", "L", "X", "End"]), st.sampled_from("kmn"), st.integers(2, 5))


@st.composite
def logs(draw):
    """Entries of one shard: declared, then control records and batches in any order."""
    steps: list[Step] = [STREAM, PAIR]
    number = 0
    for _ in range(draw(st.integers(1, 8))):
        if draw(st.booleans()):
            steps.append(draw(patterns))
            continue
        batch = []
        for event_type, key, x in draw(st.lists(happenings, min_size=1, max_size=8)):
            number += 1
            batch.append(event(number, event_type, key, x=x))
        steps.append(batch)
    return log_of(steps)[0]


def as_set(rows):
    return sorted((row.id, row.kind, row.body) for row in rows)


@given(logs(), st.data())
@settings(max_examples=100, deadline=None)
def test_cuts_reloads_and_repeats_change_nothing(log, data):
    whole = ShardState(0).apply(log)
    state = ShardState(0)
    rows = []
    done = 0
    while done < len(log):
        end = data.draw(st.integers(done + 1, len(log)))
        again = data.draw(st.integers(0, done))
        rows.extend(state.apply(log[again:end]))
        if data.draw(st.booleans()):
            state = ShardState.load(state.dump())
        done = end
    assert as_set(rows) == as_set(whole)


@given(logs(), st.data())
@settings(max_examples=50, deadline=None)
def test_a_rerun_from_a_saved_state_gives_the_same_rows(log, data):
    cut = data.draw(st.integers(0, len(log)))
    state = ShardState(0)
    state.apply(log[:cut])
    saved = state.dump()
    first = state.apply(log[cut:])
    assert as_set(ShardState.load(saved).apply(log[cut:])) == as_set(first)


# --- bad entries --------------------------------------------------------------------------------------------------


def raw(kind, body, stream="orders"):
    return StoredEntry(position="1-99", kind=kind, stream=stream, body=body)


def batch_with(**columns):
    good = EventBatch.from_events([event(1, "A")]).columns
    arrays = [columns.get(name, good.column(name)) for name in good.schema.names]
    sink = pa.BufferOutputStream()
    schema = pa.schema(
        [field.with_type(array.type) for field, array in zip(good.schema, arrays, strict=True)],
        metadata=good.schema.metadata,
    )
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return sink.getvalue().to_pybytes()


BAD_ENTRIES = {
    "unknown kind": (raw("future", b""), "control-record", "'future' is unknown"),
    "missing kind": (raw("", b""), "control-record", "'' is unknown"),
    "not a batch": (raw("events", b"junk"), "batch-format", "not an Arrow batch"),
    "empty body": (raw("events", b""), "batch-format", "0 bytes"),
    "other columns": (raw("events", batch_with(time=pa.array([1]))), "batch-format", "other types"),
    "nulls": (raw("events", batch_with(key=pa.array([None], pa.string()))), "batch-format", "nulls in key"),
    "a null type": (
        raw(
            "events",
            batch_with(type=pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["A", None]))),
        ),
        "batch-format",
        "null in the dictionary",
    ),
    "a type twice": (
        raw(
            "events",
            batch_with(type=pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["A", "A"]))),
        ),
        "batch-format",
        "twice in the dictionary",
    ),
    "bad JSON": (
        raw("events", batch_with(data=pa.array([b"{"]), type=pa.array(["U"]).dictionary_encode())),
        "batch-format",
        "not JSON",
    ),
    "a time that cannot be written": (
        raw("events", batch_with(time=pa.array([LATEST_US + 1], pa.int64()).cast(pa.timestamp("us", tz="UTC")))),
        "batch-format",
        "outside the years 1 to 9999",
    ),
    "a time before the first year": (
        raw("events", batch_with(time=pa.array([EARLIEST_US - 1], pa.int64()).cast(pa.timestamp("us", tz="UTC")))),
        "batch-format",
        "outside the years 1 to 9999",
    ),
    "undeclared stream": (
        raw("events", EventBatch.from_events([event(1, "A")]).to_bytes(), stream="nowhere"),
        "control-record",
        "'nowhere' is not declared",
    ),
    "pattern of an undeclared stream": (
        raw("pattern-on", orjson.dumps({"format": 1, "name": "p", "version": 1, "text": "x"}), stream="nowhere"),
        "control-record",
        "'nowhere' is not declared",
    ),
    "not JSON": (raw("pattern-on", b"{"), "control-record", "not JSON"),
    "unreadable pattern": (
        raw("pattern-on", orjson.dumps({"format": 1, "name": "p", "version": 1, "text": "PATTERN p EVENT SEQ("})),
        "pattern-refused",
        "line 1",
    ),
    "pattern of another name": (
        raw("pattern-on", orjson.dumps({"format": 1, "name": "q", "version": 1, "text": "PATTERN p EVENT A a"})),
        "control-record",
        "calls itself 'p'",
    ),
    "pattern that does not run": (
        raw("pattern-off", orjson.dumps({"format": 1, "name": "q"})),
        "pattern-not-running",
        "'q'",
    ),
    "unreadable constraints": (
        raw("constraints-on", orjson.dumps({"format": 1, "name": "c", "version": 9, "document": {"prior": [["A"]]}})),
        "invalid-constraints",
        "prior",
    ),
    "taken version of constraints": (
        raw(
            "constraints-on",
            orjson.dumps({"format": 1, "name": "c", "version": 1, "document": {"prior": [["A", "B"]]}}),
        ),
        "control-record",
        "version 1 of stream 'orders' is another document",
    ),
    "other ties": (
        raw(
            "stream-on",
            orjson.dumps(
                {"format": 1, "declaration": {"name": "orders", "end_events": ["End"], "ties": "simultaneous"}}
            ),
        ),
        "control-record",
        "the ties of a declared stream cannot change",
    ),
    "another key": (
        raw(
            "stream-on",
            orjson.dumps({"format": 1, "declaration": {"name": "orders", "end_events": ["End"], "key": "data.x"}}),
        ),
        "control-record",
        "the key of a declared stream cannot change",
    ),
    "declaration of another name": (
        raw("stream-on", orjson.dumps({"format": 1, "declaration": {"name": "other"}})),
        "control-record",
        "declares a stream 'other'",
    ),
}


@pytest.mark.parametrize("name", BAD_ENTRIES)
def test_a_bad_entry_becomes_a_dead_letter_and_changes_nothing(name):
    bad, code, reason = BAD_ENTRIES[name]
    before = log_of([STREAM, EITHER, PAIR, [event(1, "A"), event(2, "A", "m")]])[0]
    (events,) = log_of([[event(3, "U", x=5), event(4, "L", "m")]])[0]
    after = StoredEntry(position="1-100", kind=events.kind, stream=events.stream, body=events.body)
    rows = run_inline({0: [*before, bad, after]})
    (letter,) = bodies(rows, "dead-letter")
    assert (letter["position"], letter["kind"], letter["code"]) == ("1-99", bad.kind, code)
    assert reason in letter["reason"]
    assert [row for row in rows if row.kind != "dead-letter"] == run_inline({0: [*before, after]})


@pytest.mark.parametrize("error", [RecursionError("too deep"), ValueError("odd"), TypeError("odder"), KeyError("k")])
@pytest.mark.parametrize(
    ("kind", "place"),
    [("pattern-on", "parse_pattern"), ("constraints-on", "rules_of")],
)
def test_whatever_a_control_record_raises_becomes_a_dead_letter(monkeypatch, kind, place, error):
    def fail(*_):
        raise error

    state = ShardState(0)
    state.apply(log_of([STREAM, EITHER, PAIR, [event(1, "A")]])[0])
    before = ShardState.load(state.dump())
    odd = PatternOn(name="q", version=1, text="x") if kind == "pattern-on" else QUOTED
    bad = replace(log_of([odd])[0][0], position="1-99")
    with monkeypatch.context() as patch:
        patch.setattr(f"shards.kinds.patterns.host.{place}", fail)
        (letter,) = bodies(state.apply([bad]), "dead-letter")
    assert letter["code"] == "control-record"
    assert f"{kind} record of stream 'orders' cannot be applied: {type(error).__name__}" in letter["reason"]
    after = replace(log_of([[event(2, "U", x=5), event(3, "L", "m")]])[0][0], position="1-100")
    assert as_set(state.apply([after])) == as_set(before.apply([after]))


def test_no_memory_is_no_fault_of_a_record(monkeypatch):
    def fail(_):
        raise MemoryError

    monkeypatch.setattr("shards.kinds.patterns.host.parse_pattern", fail)
    with pytest.raises(MemoryError):
        rows_of(STREAM, PAIR)


# --- saved state --------------------------------------------------------------------------------------------------


def test_damaged_state_is_refused():
    state = ShardState(3)
    state.apply(log_of([STREAM, PAIR, [event(1, "A")]])[0])
    saved = state.dump()
    with pytest.raises(SavedStateError, match="damaged"):
        ShardState.load(saved[:-1] + bytes([saved[-1] ^ 1]))


def test_counts_go_on_after_a_reload():
    state = ShardState(3)
    state.apply(log_of([STREAM, PAIR, [event(1, "A"), event(2, "U", x=5)]])[0])
    loaded = ShardState.load(state.dump())
    assert (loaded.shard, loaded.position) == (3, "1-3")
    measured = loaded.measures()["orders"]
    assert (measured["events"], measured["matches"]) == (2, 1)


def test_a_record_kind_of_the_log_is_one_that_shards_know():
    patterns = {"pattern-on", "pattern-off", "pattern-pause"}
    operators = {"operator-on", "operator-off", "operator-pause"}
    times = {"tick", "trace-end", "punctuation"}
    assert {kind.value for kind in RecordKind} == {
        "events",
        "ask",
        "stream-on",
        "stream-off",
        "constraints-on",
        "lateness",
        "keys-closed",
        "table-on",
        "table-off",
        "table-row",
    } | patterns | operators | times


def test_what_is_replayed_is_as_if_it_had_been_applied():
    steps: list[Step] = [STREAM, PAIR, [event(1, "A"), event(2, "U", x=5)], PatternOff("pair"), PAIR, [event(3, "A")]]
    applied, replayed = ShardState(0), ShardState(0)
    assert bodies(applied.apply(log_of(steps)[0]), "alert") != []
    replayed.replay(log_of(steps)[0])
    assert replayed.dump() == applied.dump()
    more = log_of([*steps, [event(4, "U", x=4)]])[0]
    assert replayed.apply(more) == applied.apply(more) != []
