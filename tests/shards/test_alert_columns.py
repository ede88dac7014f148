"""Alerts and endings made by columns equal, byte for byte, those made row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constraints import ConstraintSet, Exclusive, Prior, to_document
from nfa import Matcher, Prune
from shards.entries import StoredEntry
from shards.kinds.patterns.alert_columns import alerts_of, steps_of
from shards.kinds.patterns.result_kinds import ALERT, ENDING
from shards.kinds.patterns.results import PatternResults, alert_of, ending_of
from shards.kinds.patterns.rules import rules_of
from shards.operators import Origin, in_columns
from shards.rows import row_id, row_ids
from shards.state import ShardState
from streams import LATEST_US, Event, EventBatch, PatternOn, StreamDeclaration, StreamOn
from streams.tables import TableForm
from tests.builders.shards import event, log_of
from tests.builders.tables import tables_of

PATTERNS = [
    ["PATTERN p EVENT SEQ(A z, B y, A x) WITHIN 9 s"],
    ["PATTERN p EVENT SEQ(A a, B b)", "PATTERN q EVENT SEQ(B b, A a)", "PATTERN r EVENT A only"],
    ["PATTERN p EVENT SEQ(A a, B+ b, C c) WITHIN 9 s"],
    ["PATTERN p EVENT SEQ(C+ c, B? b, A+ a)"],
    ["PATTERN p EVENT SEQ(A|B a)", "PATTERN q EVENT SEQ(A a, OR(B b [v > 1 AND name != '\\\"x'], C b))"],
    ["PATTERN p EVENT AND(B y, A x)"],
    ["PATTERN p EVENT SEQ(A a, NOT B) WITHIN 2 s"],
    ["PATTERN p EVENT SEQ(A a, NOT C)"],
    ['PATTERN p EVENT SEQ(A a, B b) RETURN a.v AS one, b.name AS `two"`', "PATTERN q EVENT SEQ(B b, C c)"],
    ["PATTERN p EVENT SEQ(A a, C c) SELECT NEXT", "PATTERN q EVENT C x"],
]
GUARDED = [
    "PATTERN p EVENT SEQ(A a, B b)",
    "PATTERN q EVENT SEQ(A a, NOT C)",
    "PATTERN r EVENT SEQ(B b, A a) WITHIN 3 s",
    "PATTERN s FOR EACH ROW OF limits t EVENT SEQ(A a, B b [v >= t.v])",
]
CONSTRAINTS = ConstraintSet.of((Exclusive("B", "C"), Prior("A", "B")))
ENTRY = StoredEntry(position="1-0", kind="events", stream="s", body=b"")
NAMES = ["", "e", "é", "\U0001f600", '"', "\\", "\n", "\x1f", "\x7f", "</", "\u2028", "x" * 70]
TIMES = [-62_135_596_800_000_000, -1, 0, 1, 1_500_000, 2_000_000, 5_000_000, LATEST_US - 9_000_000]
names = st.sampled_from(NAMES)


@st.composite
def traces(draw):
    """Events of few kinds, times and names."""
    times = sorted(draw(st.lists(st.sampled_from(TIMES), max_size=12)))
    keys = st.sampled_from([draw(st.sampled_from(NAMES[1:])), "k", "k"])
    return [
        Event(
            id=f"{draw(names)}{number}",
            type=draw(st.sampled_from("ABC")),
            time_us=time_us,
            key=draw(keys),
            data={"v": draw(st.integers(0, 3)), "name": draw(names)},
        )
        for number, time_us in enumerate(times)
    ]


@cache
def limits():
    form = TableForm(key=("id",), columns={"id": "text", "v": "integer"})
    return tables_of("limits", form, [{"id": "é", "v": 1}, {"id": '"', "v": 2}])


def outputs_of(texts, events, cuts, guard=None):
    """What a matcher finds, batch by batch, and at the end."""
    matcher = Matcher(end_events=("E",))
    if guard is not None:
        matcher.set_guard(1, guard.monitor)
    for number, text in enumerate(texts, start=3):
        matcher.add_pattern(text, version=number)
    matcher.read_tables(limits())
    batch = EventBatch.from_events(events)
    borders = [0, *sorted(cuts), len(events)]
    for first, end in pairwise(borders):
        yield matcher.process(batch.slice(first, end - first))
    yield matcher.finish()


def with_route(body, route):
    return {**body, "route": route} if route else body


def expected_alerts(output, stream, route):
    """One by one."""
    found = []
    for match in output.matches():
        identity, body = alert_of(stream, match, steps_of(output.versions[match.pattern, match.version]))
        found.append((identity, orjson.dumps(with_route(body, route))))
    return found


def pairs_of(blocks, kind):
    """Ids and bodies; subjects and counters are those that one row at a time would have."""
    assert {block.kind for block in blocks} <= {kind}
    for block in blocks:
        rows = list(map(orjson.loads, block.bodies.to_pylist()))
        assert block.subjects.to_pylist() == [kind.subject_of(row) for row in rows]
        assert block.counters.to_pylist() == [kind.counter_of(row) for row in rows]
    return [pair for block in blocks for pair in zip(block.ids.to_pylist(), block.bodies.to_pylist(), strict=True)]


@pytest.mark.parametrize("texts", PATTERNS, ids=[" ".join(texts) for texts in PATTERNS])
@given(traces(), st.lists(st.integers(0, 12), max_size=3), names, st.sampled_from(["", "customer", '"r"']), st.data())
def test_alerts_are_those_of_the_values(texts, events, cuts, stream, route, data):
    cuts = [cut for cut in cuts if cut <= len(events)]
    at_once = data.draw(st.sampled_from([1, 3, 32_768]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shards.kinds.patterns.alert_columns._EVENTS_AT_ONCE", at_once)
        for output in outputs_of(texts, events, cuts):
            blocks = [found for lane in output.lanes for found in alerts_of(lane, stream, route) if len(lane.matches)]
            expected = expected_alerts(output, stream, route)
            assert pairs_of(blocks, ALERT) == expected
            tally = sum((block.counts_by("pattern") for block in blocks), Counter())
            assert tally == Counter(orjson.loads(body)["pattern"] for _, body in expected)


@pytest.mark.parametrize("bound", [0, 1_000])
def test_matches_with_few_and_with_many_bound_events_give_the_same_alerts(monkeypatch, bound):
    monkeypatch.setattr("nfa.results.batch._FEW_EVENTS", bound)
    events = [Event(id=f"e{n}", type="ABC"[n % 3], time_us=n, key="k") for n in range(12)]
    for output in outputs_of(["PATTERN p EVENT SEQ(A a, B+ b, C c) WITHIN 9 s"], events, [5, 9]):
        results = PatternResults(stream="s", patterns=output.versions, rules={})
        found = list(in_columns(results.of(output, Origin(shard=0, entry=ENTRY, newest=None), None)))
        assert pairs_of(found, ALERT) == expected_alerts(output, "s", "")


@pytest.mark.parametrize("newest", [None, 1, 2])
@pytest.mark.parametrize("prune", [Prune.STATE, Prune.SHADOW])
@given(traces(), st.lists(st.integers(0, 12), max_size=2), st.sampled_from(["", "é"]))
def test_guarded_alerts_and_endings_are_those_of_the_values(newest, prune, events, cuts, route):
    rules = rules_of(to_document(replace(CONSTRAINTS, settings=replace(CONSTRAINTS.settings, prune=prune))), "log")
    texts = GUARDED
    for output in outputs_of(texts, events, [cut for cut in cuts if cut <= len(events)], rules):
        results = PatternResults(stream="s", patterns=output.versions, rules={1: rules}, route=route)
        expected = [ending_of("s", ending, results._reason(ending)) for ending in output.endings(newest)]
        for few in (0, 24):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("nfa.results.batch.FEW_ROWS", few)
                columns = list(in_columns(results.of(output, Origin(shard=0, entry=ENTRY, newest=newest), None)))
            alerts = [one for one in columns if one.kind is ALERT]
            assert pairs_of(alerts, ALERT) == expected_alerts(output, "s", route)
            assert pairs_of([one for one in columns if one.kind is ENDING], ENDING) == [
                (identity, orjson.dumps(with_route(body, route))) for identity, body in expected
            ]


def test_guarded_examples_have_what_they_are_about():
    kinds = "ACBABBABAB"
    keys = "jjjjjkkkll"
    events = [
        Event(id=f"e{n}", type=kind, time_us=n, key=key) for n, (kind, key) in enumerate(zip(kinds, keys, strict=True))
    ]
    found = set()
    ended = []
    for prune in (Prune.STATE, Prune.SHADOW):
        document = to_document(replace(CONSTRAINTS, settings=replace(CONSTRAINTS.settings, prune=prune)))
        for output in outputs_of(GUARDED, events, [3], rules_of(document, "log")):
            found |= {(one.decided_by, one.deviating, one.would_be_lost) for one in output.matches()}
            ended += output.endings()
    assert {True, False} == {one.row is None for one in ended}
    assert {(None, False, False), (None, True, False), ("constraint", False, False)} <= found
    assert any(would_be_lost for *_, would_be_lost in found)


def test_a_time_after_the_year_9999_is_written_as_its_last_moment_as_one_by_one():
    text = "PATTERN p EVENT SEQ(A a, NOT B) WITHIN 2 s"
    events = [Event(id="e", type="A", time_us=LATEST_US, key="k")]
    *_, output = outputs_of([text], events, [])
    (rows,) = alerts_of(output.lanes[0], "s")
    (body,) = rows.bodies.to_pylist()
    assert orjson.loads(body)["detected_at"] == "9999-12-31T23:59:59.999999Z"
    assert [body] == [one for _, one in expected_alerts(output, "s", "")]


@given(st.lists(st.tuples(names, names)))
def test_ids_of_many_rows_are_those_of_each(parts):
    texts = pa.array([orjson.dumps(["ending", *part]).decode() for part in parts], pa.string())
    expected = [row_id(ENDING, *part) for part in parts]
    assert row_ids(texts).to_pylist() == expected
    assert row_ids(texts[1:]).to_pylist() == expected[1:]


def test_alerts_of_a_shard_keep_their_order_among_other_rows():
    patterns = [PatternOn(name="p", version=1, text="PATTERN p EVENT SEQ(A a, B b) WITHIN 2 s EMIT TIMEOUTS")]
    events = [event(1, "A"), event(2, "B"), event(3, "A", "j"), event(9, "A"), event(10, "B"), event(20, "X")]
    rows = ShardState(0).apply(log_of([StreamOn(StreamDeclaration(name="orders")), *patterns, events])[0])
    assert [row.kind for row in rows] == ["alert", "alert", "timeout"]
