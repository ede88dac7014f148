"""The matcher agrees with the enumeration of the reference, however the stream is cut and saved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import (
    KeyMismatch,
    Match,
    Matcher,
    MonitorState,
    Node,
    Policy,
    UnknownPattern,
    describe_node,
    describe_pattern,
    match_order,
)
from streams import Event, EventBatch, Ties
from tests.builders.patterns import batches, event_lists, nodes, patterns, run, splits
from tests.references.patterns.outcome import reference_matches

TIES: tuple[Ties, ...] = ("log", "log", "simultaneous")


def text_of(name: str, node: Node) -> str:
    return f"PATTERN {name} EVENT {describe_node(node)}"


def trace(types: str, key: str = "k") -> list[Event]:
    return [Event(id=f"{key}{i}", type=name, time_us=i, key=key, data={"v": i}) for i, name in enumerate(types)]


def matched(text: str, events: list[Event]) -> list[dict[str, str]]:
    matcher = Matcher()
    matcher.add_pattern(text)
    found, _ = run(matcher, [EventBatch.from_events(events)])
    return [{alias: ids[0] for alias, ids in match.bindings.items()} for match in found]


def shape(found: list[Match]) -> list[tuple[object, ...]]:
    return [
        (match.pattern, match.key, sorted(match.bindings.items()), match.start_us, match.end_us, match.detected_us)
        for match in found
    ]


@settings(max_examples=400)
@given(st.data())
def test_the_engines_agree_with_the_reference_for_any_split_and_saves(data: st.DataObject) -> None:
    ties: Ties = data.draw(st.sampled_from(TIES))
    chosen = [data.draw(patterns(name=name, max_atoms=3)) for name in "pq"]
    events = data.draw(event_lists(types=("A", "B", "C"), max_size=8))
    end_events = data.draw(st.sampled_from([(), (), ("C",)]))
    matcher = Matcher(end_events=end_events, ties=ties)
    for pattern in chosen:
        matcher.add_pattern(pattern.text)
    found = []
    for batch in batches(events, data.draw(splits(len(events)))):
        if data.draw(st.booleans()):
            matcher = Matcher.load(matcher.dump(), {})
        found += matcher.process(batch).matches()
    found += matcher.finish().matches()
    expected = reference_matches(chosen, events, end_events, ties=ties)
    assert shape(sorted(found, key=match_order)) == shape(expected)
    assert [match.returns for match in sorted(found, key=match_order)] == [match.returns for match in expected]
    assert matcher.stats.matches == len(found)


@settings(max_examples=100)
@given(st.data())
def test_finer_keys_make_finer_traces(data: st.DataObject) -> None:
    pattern = replace(data.draw(patterns(max_atoms=3)), keys=(("key",), ("n", "x")))
    events = data.draw(event_lists(types=("A", "B", "C"), max_size=8))
    matcher = Matcher()
    matcher.add_pattern(describe_pattern(pattern))
    found = []
    for batch in batches(events, data.draw(splits(len(events)))):
        if data.draw(st.booleans()):
            matcher = Matcher.load(matcher.dump(), {})
        found += matcher.process(batch).matches()
    found += matcher.finish().matches()
    assert shape(sorted(found, key=match_order)) == shape(reference_matches([pattern], events))


@settings(max_examples=150)
@given(st.data())
def test_patterns_come_and_go_without_touching_others(data: st.DataObject) -> None:
    stays, comes = (data.draw(patterns(name=name, max_atoms=3)) for name in ("stays", "comes"))
    events = data.draw(event_lists(types=("A", "B", "C"), max_size=8))
    border = data.draw(st.integers(0, len(events)))
    matcher = Matcher()
    matcher.add_pattern(stays.text)
    matcher.add_pattern("PATTERN goes EVENT SEQ(A a, NEXT B b [v > a.v OR v IS NULL], C+ c)")
    found = [
        match for match in matcher.process(EventBatch.from_events(events[:border])).matches() if match.pattern != "goes"
    ]
    matcher.remove_pattern("goes")
    matcher.add_pattern(comes.text)
    found += matcher.process(EventBatch.from_events(events[border:])).matches()
    found += matcher.finish().matches()
    expected = reference_matches([stays], events) + reference_matches([comes], events[border:])
    assert shape(sorted(found, key=match_order)) == shape(sorted(expected, key=match_order))


@given(st.data())
def test_renaming_and_time_shift_change_nothing(data: st.DataObject) -> None:
    node, events = data.draw(nodes()), data.draw(event_lists())
    moved = [
        Event(id=event.id, type=event.type, time_us=event.time_us + 977, key=f"new-{event.key}", data=event.data)
        for event in events
    ]
    matcher, other = Matcher(), Matcher()
    matcher.add_pattern(text_of("p", node))
    other.add_pattern(text_of("renamed", node))
    plain, _ = run(matcher, [EventBatch.from_events(events)])
    shifted, _ = run(other, [EventBatch.from_events(moved)])
    assert [(match.bindings, match.start_us + 977, match.end_us + 977) for match in plain] == [
        (match.bindings, match.start_us, match.end_us) for match in shifted
    ]


@given(st.data())
def test_state_is_given_back_when_traces_end(data: st.DataObject) -> None:
    node, events = data.draw(nodes(types=("A", "B", "C"))), data.draw(event_lists(types=("A", "B", "C")))
    matcher = Matcher(end_events=("End",))
    matcher.add_pattern(text_of("p", node))
    run(matcher, batches(events, data.draw(splits(len(events)))))
    last = [Event(id=f"end-{key}", type="End", time_us=99, key=key) for key in {event.key for event in events}]
    matcher.process(EventBatch.from_events(last))
    stats = matcher.stats
    assert (stats.held, stats.nodes, stats.open_traces) == (0, 0, 0)


def test_order_of_the_log_decides_ties() -> None:
    tied = [Event(id=name, type=name, time_us=5, key="k") for name in "AB"]
    assert matched("PATTERN p EVENT SEQ(A a, B b)", tied) == [{"a": "A", "b": "B"}]
    assert matched("PATTERN p EVENT SEQ(B b, A a)", tied) == []


@pytest.mark.parametrize(
    ("event", "types", "count"),
    [
        ("SEQ(A, B)", "AABB", 4),
        ("AND(A x, A y)", "AA", 2),
        ("OR(A a, A a)", "A", 1),
        ("OR(SEQ(A a, B b), AND(A a, B b))", "AB", 1),
        ("SEQ(A, AND(SEQ(B, C), D))", "ABDC", 1),
        ("A", "BAB", 1),
        ("SEQ(A, B)", "BA", 0),
    ],
)
def test_counts_of_combinations(event: str, types: str, count: int) -> None:
    assert len(matched(f"PATTERN p EVENT {event}", trace(types))) == count


def test_many_traces_and_instances_make_the_arenas_grow() -> None:
    keys = [f"k{number}" for number in range(700)]
    events = [
        Event(id=f"{key}-{number}", type=name, time_us=number, key=key)
        for number, name in enumerate("AAAB")
        for key in keys
    ]
    assert len(matched("PATTERN p EVENT SEQ(A a, B b)", events)) == 3 * len(keys)


def test_an_output_larger_than_the_buffer_is_complete() -> None:
    found = matched("PATTERN p EVENT SEQ(A a, B b)", trace("A" * 9_000 + "B"))
    assert len(found) == 9_000
    assert len({match["a"] for match in found}) == 9_000


def test_matches_beyond_the_limit_are_counted_not_silent() -> None:
    matcher = Matcher(match_limit=10)
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)", version=4)
    output = matcher.process(EventBatch.from_events(trace("A" * 25 + "BB")))
    assert len(output.matches()) == 20
    assert matcher.stats.overflow == 30
    assert [(found.event_id, found.dropped, found.version) for found in output.overflows()] == [
        ("k25", 15, 4),
        ("k26", 15, 4),
    ]
    assert (output.endings(), output.deviations()) == ([], [])


@pytest.mark.compiled
def test_a_number_of_combinations_beyond_all_counting_is_cut() -> None:
    steps = ", ".join(f"A a{n}" for n in range(40))
    matcher = Matcher()
    matcher.add_pattern(f"PATTERN p EVENT SEQ({steps})")
    output = matcher.process(EventBatch.from_events(trace("A" * 100)))
    assert matcher.stats.overflow == 2**53
    assert all(0 < found.dropped <= 2**53 for found in output.overflows())


def test_a_limit_below_one_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="match_limit is 0; it must be at least 1"):
        Matcher(match_limit=0)


def test_a_pattern_starts_at_its_place() -> None:
    matcher = Matcher()
    events = trace("ABAB")
    matcher.process(EventBatch.from_events(events[:2]))
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)")
    found, _ = run(matcher, [EventBatch.from_events(events[2:])])
    assert [match.bindings for match in found] == [{"a": ("k2",), "b": ("k3",)}]


def test_other_patterns_keep_their_partial_matches_when_one_comes_or_goes() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)")
    matcher.add_pattern("PATTERN gone EVENT SEQ(A a, C c, B b)")
    events = trace("ACB")
    matcher.process(EventBatch.from_events(events[:2]))
    held = matcher.stats.held
    matcher.remove_pattern("gone")
    assert matcher.stats.held == 1
    matcher.add_pattern("PATTERN late EVENT SEQ(C c, B b)")
    found, _ = run(matcher, [EventBatch.from_events(events[2:])])
    assert held == 3
    assert [(match.pattern, match.start_us) for match in found] == [("p", 0)]
    assert matcher.stats.held == 1


def test_replacing_a_pattern_starts_it_afresh() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)")
    events = trace("AAB")
    matcher.process(EventBatch.from_events(events[:1]))
    matcher.add_pattern("PATTERN p EVENT SEQ(A first, B b)", version=2)
    found, _ = run(matcher, [EventBatch.from_events(events[1:])])
    assert [(match.version, match.bindings["first"]) for match in found] == [(2, ("k1",))]


def test_removing_an_unknown_pattern_names_the_known_ones() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT A")
    with pytest.raises(UnknownPattern, match="no pattern 'q' is registered here; registered: p"):
        matcher.remove_pattern("q")


def test_events_older_than_their_trace_are_counted() -> None:
    matcher = Matcher()
    times = [5, 3, 7]
    events = [Event(id=str(time), type="A", time_us=time, key="k") for time in times]
    matcher.process(EventBatch.from_events(events))
    assert matcher.stats.out_of_order == 1


def test_work_per_event_does_not_grow_with_the_combinations_it_takes_part_in() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b, C c, D d)")
    matcher.process(EventBatch.from_events(trace("A" * 50 + "B" * 50 + "C" * 50)))
    assert matcher.stats.nodes == 150
    assert matcher.stats.held == 150


def test_decoded_columns_are_used_instead_of_the_payload() -> None:
    batch = EventBatch.from_events(trace("AA"))
    decoded = EventBatch(batch.columns, {("v",): pa.array([7, 9], pa.int64())})
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT A a [v = 9]")
    assert [match.bindings for match in matcher.process(decoded).matches()] == [{"a": ("k1",)}]


def test_an_empty_batch_is_no_event() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT A")
    assert matcher.process(EventBatch.from_events([])).n_matches == 0
    assert matcher.stats.events == 0
    assert matcher.process(EventBatch.from_events(trace("A"))).n_matches == 1


def test_an_interrupted_matcher_says_so_instead_of_going_on() -> None:
    class Unwell:
        types = frozenset("B")
        symbols = ()
        bits = None
        policy = Policy()
        start = MonitorState()

        def step(self, state, event):
            if event.type == "B":
                raise KeyError(event.type)
            return state

        def can_occur(self, state, atom):
            return True

        def live(self, state, query):
            return np.ones(len(query.states), np.bool_)

    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)")
    matcher.set_guard(1, Unwell())
    with pytest.raises(KeyError):
        matcher.process(EventBatch.from_events(trace("AB")))
    for use in (lambda: matcher.process(EventBatch.from_events([])), matcher.dump):
        with pytest.raises(RuntimeError, match="half advanced, load saved state"):
            use()


def test_timeouts_of_events_that_came_out_of_order_end_at_their_newest_event():
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, A b, C c) WITHIN 7 us EMIT TIMEOUTS")
    found = []
    for number, time_us in enumerate((10, 6, 14, 30)):  # a1 and b2 stay until 17, though b2 is of 6
        event = Event(id=f"e{number}", type="A", time_us=time_us, key="k", data={})
        found += matcher.process(EventBatch.from_events([event])).timeouts()
    assert [(timeout.bindings, timeout.due_us) for timeout in found] == [
        ({"a": ("e0",), "b": ("e1",)}, 13),
        ({"a": ("e1",)}, 13),
        ({"a": ("e0",), "b": ("e2",)}, 17),
        ({"a": ("e2",)}, 21),
    ]
    assert matcher.stats.nodes == 1


TWO_TICKETS = [
    Event(id="a", type="A", time_us=1, key="t1", data={"customer": "ann"}),
    Event(id="b", type="B", time_us=2, key="t1", data={"customer": "ann"}),
]


def test_a_pattern_on_another_key_than_the_events_is_refused() -> None:
    text = "PATTERN p EVENT SEQ(A a, B b) WHERE [customer]"
    with pytest.raises(KeyMismatch, match=r"by \[customer\], the events by ticket: write WHERE \[key, customer\]"):
        Matcher(key_paths=[("ticket",), ("data", "ticket")]).add_pattern(text)
    with pytest.raises(KeyMismatch, match="the events by key") as caught:
        Matcher().add_pattern(text)
    assert caught.value.code == "pattern-key"
    matcher = Matcher(key_paths=[("customer",)])
    matcher.add_pattern(text)
    assert len(matcher.process(EventBatch.from_events(TWO_TICKETS)).matches()) == 1


def test_state_of_before_with_such_a_pattern_still_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("nfa.matcher.require_key", lambda *_: None)
        matcher = Matcher()
        matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b) WHERE [customer]")
        matcher.process(EventBatch.from_events(TWO_TICKETS[:1]))
    loaded = Matcher.load(matcher.dump(), {})
    assert len(loaded.process(EventBatch.from_events(TWO_TICKETS[1:])).matches()) == 1


def test_what_is_made_of_a_text_is_made_once_for_all_matchers():
    text = "PATTERN p EVENT SEQ(A{1000} a, B{1000} b, C c)"
    several = [Matcher(), Matcher(), Matcher()]
    queries = [matcher.add_pattern(text) for matcher in several]
    assert all(query is queries[0] for query in queries)
    held = {id(state) for states in several[0].patterns["p"].view.pattern_states for state in states}
    assert held <= {id(state) for state in queries[0].states}
