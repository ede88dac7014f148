"""A shard's state is split: the parts together emit the results that the whole would have emitted."""

from collections import Counter

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import ConstraintSet, following, to_document
from nfa import describe_pattern
from shards.state import ShardState
from streams import (
    ConstraintsOn,
    Event,
    PatternOff,
    PatternOn,
    Punctuation,
    StreamDeclaration,
    StreamOn,
    Tick,
    TraceEnd,
)
from tests.builders.patterns import patterns as drawn_patterns
from tests.builders.shards import Step, log_of, run_inline, saved_measures
from workflows import (
    Activity,
    ExclusiveChoice,
    Loop,
    ModelFormat,
    ProcessTree,
    Sequence,
    WorkflowModel,
    compile_workflow,
)

SECOND_US = 1_000_000
TYPES = ("A", "U", "L", "X")
KEYS = tuple(f"k{number}" for number in range(9))
TREE = Sequence((Loop(body=Activity("A"), redo=Activity("X")), ExclusiveChoice((Activity("L"), Activity("U")))))


def pattern(name, text, **more):
    return PatternOn(name=name, version=more.pop("version", 1), text=f"PATTERN {name} EVENT {text}", **more)


def rules(document, version=1):
    return ConstraintsOn(name="orders", version=version, document={"end": ["End"], **document})


def followed(tree: ProcessTree) -> ConstraintsOn:
    compiled = compile_workflow(WorkflowModel(name="order", format=ModelFormat.TREE, source=tree))
    constraint_set = following(
        ConstraintSet(end_events=frozenset({"End"})),
        workflow="order",
        version=1,
        constraints=compiled.extraction.constraints,
        end_events=frozenset(compiled.extraction.end),
        automaton=compiled.automaton,
    )
    return ConstraintsOn(name="orders", version=1, document=to_document(constraint_set))


PATTERNS = [
    pattern("pair", "SEQ(A a, U u)"),
    pattern("window", "SEQ(A a, L l) WITHIN 6 s"),
    pattern("timed", "SEQ(A a, U u) WITHIN 5 s EMIT TIMEOUTS"),
    pattern("never", "SEQ(A a, NOT X)"),
    pattern("soon", "SEQ(A a, NOT X) WITHIN 7 s"),
    pattern("between", "SEQ(A a, NOT L, U u)"),
    pattern("compared", "SEQ(A a [v > 0], U u [v > a.v]) RETURN u.v - a.v AS gain"),
    pattern("once", "SEQ(A a, NEXT U u, NOT L) SELECT ONCE PER KEY"),
    pattern("past", "SEQ(A a, U+ u) SKIP PAST LAST EVENT LIMIT 2"),
    pattern("both", "AND(A a, U u, L l)"),
    pattern("finer", "SEQ(A a, U u) WHERE [key, w]"),
    pattern("finerwait", "SEQ(A a, NOT X) WITHIN 6 s WHERE [key, w]"),
    pattern("unguarded", "SEQ(L l, U u)", is_guarded=False),
    pattern("customer", "SEQ(A a, U u) WHERE [customer]", route="customer"),
    pattern("customerwait", "SEQ(L a, NOT U) WITHIN 8 s WHERE [customer]", route="customer"),
    pattern("customerfiner", "SEQ(A a, U u) WITHIN 9 s WHERE [customer, w]", route="customer"),
]
CHANGES: list[Step] = [
    pattern("pair", "SEQ(A a, X x) WITHIN 8 s", version=2, start="migrate"),
    pattern("soon", "SEQ(U a, NOT X) WITHIN 3 s", version=2, start="migrate"),
    pattern("customer", "SEQ(A a, L l) WITHIN 5 s WHERE [customer]", version=2, start="migrate", route="customer"),
    pattern("once", "SEQ(A a, L l)", version=2),
    PatternOff("window"),
    rules({"exclusive": [["X", "U"]]}, version=2),
]
FIRM = {"prior": [["X", "L"]], "exclusive": [["L", "U"]]}
RULES: list[ConstraintsOn | None] = [
    None,
    rules(FIRM),
    rules({**FIRM, "settings": {"prune": "shadow"}}),
    rules({**FIRM, "settings": {"max_monitor_states": 1}}),
    rules({"response": [["A", "U"]], "prior": [["A [v > 1]", "X"]], "settings": {"on_violation": "report"}}),
    followed(TREE),
]


@st.composite
def streams(draw):
    """A stream, its patterns and rules, then batches among changes; times grow, or are shuffled within the lateness."""
    lateness = draw(st.sampled_from([None, 3]))
    declared = StreamDeclaration(
        name="orders",
        end_events=("End",),
        keys={"customer": "data.customer"},
        lateness=lateness,
        idle_timeout=draw(st.sampled_from([None, 6])),
        ties=draw(st.sampled_from(["log", "log", "simultaneous"])),
    )
    known = draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=6, unique_by=lambda one: one.name))
    random = draw(st.lists(drawn_patterns(types=TYPES[:3]), max_size=2))
    texts = [describe_pattern(one).replace("PATTERN p", f"PATTERN p{n}", 1) for n, one in enumerate(random)]
    own = [PatternOn(name=f"p{number}", version=1, text=text) for number, text in enumerate(texts)]
    guard = draw(st.sampled_from(RULES))
    steps: list[Step] = [StreamOn(declared), *([] if guard is None else [guard]), *known, *own]
    return steps + draw(happenings(lateness or 0, {one.name for one in known}))


@st.composite
def happenings(draw, lateness, running):
    row = st.tuples(
        st.sampled_from((*TYPES, *TYPES, "End")), st.sampled_from(KEYS), st.integers(0, 2), st.integers(0, 3)
    )
    steps: list[Step] = []
    number, seconds = 0, 10
    for rows in draw(st.lists(st.lists(row, min_size=1, max_size=12), min_size=2, max_size=8)):
        batch = []
        for event_type, key, pause, value in rows:
            seconds += pause
            number += 1
            late = draw(st.integers(0, lateness)) if lateness else 0
            data = {"v": value, "w": number % 2, "customer": f"c{value}"}
            batch.append(
                Event(id=f"e{number}", type=event_type, time_us=(seconds - late) * SECOND_US, key=key, data=data)
            )
        steps += [batch, Tick(time_us=seconds * SECOND_US, cause="events")]
        match draw(st.integers(0, 8)):
            case 0:
                steps.append(TraceEnd(key=draw(st.sampled_from(KEYS))))
            case 1:
                steps.append(Punctuation(before_us=(seconds - lateness) * SECOND_US))
            case 2 | 3:
                changes = [one for one in CHANGES if not isinstance(one, PatternOff | PatternOn) or one.name in running]
                change = draw(st.sampled_from(changes or [Punctuation(key="k1")]))
                running -= {change.name} if isinstance(change, PatternOff) else set()
                steps.append(change)
    return [*steps, Tick(time_us=(seconds + 100) * SECOND_US, cause="clock")]


def told(rows):
    """What rows say, in any order and wherever they were found; of a dead letter, which each shard has, the reason."""
    letters = {orjson.loads(row.body)["reason"] for row in rows if row.kind == "dead-letter"}
    return sorted((row.kind, row.id, row.body) for row in rows if row.kind != "dead-letter"), letters


def totals(states):
    """Numbers of all shards together, by stream."""
    found: dict[str, Counter[str]] = {}
    for state in states:
        for name, measured in saved_measures(state).items():
            counted = {part: count for part, count in measured.items() if part != "watermark_us"}  # of each for itself
            found.setdefault(name, Counter()).update(counted)
    return found


def cut_at(logs, step):
    """The entries of the first steps, and those of the others."""
    first = {shard: [one for one in log if int(one.position[2:]) <= step] for shard, log in logs.items()}
    return first, {shard: log[len(first[shard]) :] for shard, log in logs.items()}


def split_all(states, shards, new_shards):
    parts = [part for shard in range(shards) for part in states[shard].split(shards, new_shards)]
    assert sorted(part.shard for part in parts) == list(range(new_shards))
    return {part.shard: ShardState.load(part.dump()) for part in parts}


@pytest.mark.slow
@settings(max_examples=60)
@given(steps=streams(), shards=st.sampled_from([1, 2, 3]), factor=st.sampled_from([2, 3]), data=st.data())
def test_split_shards_go_on_as_the_whole_ones_would(steps, shards, factor, data):
    few, many = log_of(steps, shards=shards), log_of(steps, shards=shards * factor)
    cut = data.draw(st.integers(0, max(int(one.position[2:]) for log in few.values() for one in log)))
    first, rest = cut_at(few, cut)
    states = {shard: ShardState(shard) for shard in range(shards)}
    before = run_inline(first, states)
    bodies = {shard: state.dump() for shard, state in states.items()}
    parts = split_all(states, shards, shards * factor)
    assert {shard: state.dump() for shard, state in states.items()} == bodies
    assert totals(parts.values()) == totals(states.values())
    after = run_inline(cut_at(many, cut)[1], parts)
    expected = told(before + run_inline(rest, states))
    assert told(before + after) == expected


def test_a_shard_is_divided_into_those_that_its_number_divides():
    state = ShardState(1)
    state.apply(log_of([StreamOn(StreamDeclaration(name="orders")), [], PATTERNS[0]], shards=3)[1])
    parts = list(state.split(3, 12))
    assert [part.shard for part in parts] == [1, 4, 7, 10]
    assert [part.position for part in parts] == [state.position, "0-0", "0-0", "0-0"]


def test_counts_go_on_in_the_first_part_alone():
    batch = [Event(id=f"e{n}", type="AU"[n % 2], time_us=n, key=f"k{n // 2}", data={}) for n in range(20)]
    state = ShardState(0)
    state.apply(log_of([StreamOn(StreamDeclaration(name="orders")), PATTERNS[0], batch])[0])
    first, second = (Counter(part.measures()["orders"]) for part in state.split(1, 2))
    assert (first["events"], first["matches"]) == (20, 10)
    assert (second["events"], second["matches"]) == (0, 0)
    assert first["open_traces"] + second["open_traces"] == 10 > first["open_traces"] > 0
