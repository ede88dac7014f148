import subprocess
import sys

import orjson

from shards import RESULT_KINDS, ShardState
from shards.kinds import KINDS
from streams import ConstraintsOn, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step, event, log_of

STEPS: list[Step] = [
    StreamOn(StreamDeclaration(name="orders", end_events=("Z",))),
    PatternOn(name="p", version=1, text="PATTERN p EVENT SEQ(A a, B b)"),
    PatternOn(name="late", version=1, text="PATTERN late EVENT SEQ(A a, D d, E e) WITHIN 2 s LIMIT 5 EMIT TIMEOUTS"),
    PatternOn(name="never", version=1, text="PATTERN never EVENT SEQ(P a, NOT X)"),
    PatternOn(name="wrong", version=1, text="PATTERN wrong"),
    ConstraintsOn(
        name="orders", version=1, document={"constraints": ["exclusive(B, C)", "prior(A, C)", "prior(X, Y)"]}
    ),
    [event(1, "A"), event(2, "B"), event(3, "A", "j"), event(4, "C", "j"), event(5, "A", "j"), event(6, "B")],
    [event(7, "P", "i"), event(8, "Y", "i"), event(9, "X", "i")],
]
PROGRAM = """
import sys, shards
print(*shards.RESULT_KINDS)
print(*sorted({"nfa", "numba", "constraints"} & sys.modules.keys()))
"""


def test_columns_say_what_bodies_say():
    rows = ShardState(0).apply(log_of(STEPS)[0])
    for row in rows:
        body = orjson.loads(row.body)
        assert row.counter == RESULT_KINDS[row.kind].counter_of(body)
        assert row.subject == (body.get("pattern") or "")
    assert {row.kind for row in rows} == {"alert", "timeout", "ending", "deviation", "correction", "dead-letter"}
    assert '["orders","late","d, e"]' in {row.counter for row in rows}


def test_bodies_for_webhooks_have_no_members_that_templates_do_not_know():
    for row in ShardState(0).apply(log_of(STEPS)[0]):
        kind = RESULT_KINDS[row.kind]
        if kind.delivered_as:
            body = orjson.loads(row.body)
            assert body.get("type", "ending") == kind.delivered_as  # early terminations get it on their way
            assert body.keys() <= kind.members


def test_the_kinds_of_operators_have_distinct_results_with_complete_rows_in_the_table():
    named = [result.name for kind in KINDS for result in kind.result_kinds]
    assert len({*named, "derived", "dead-letter", "stats"}) == len(named) + 3
    for kind in RESULT_KINDS.values():
        assert kind.metric is None or {*kind.metric.labels} <= {*kind.counted_by}
        assert not kind.counts_for or RESULT_KINDS[kind.counts_for].counted_by == kind.counted_by
        assert bool(kind.members) == bool(kind.delivered_as)


def test_a_counter_of_an_earlier_release_may_be_shorter():
    assert RESULT_KINDS["deviation"].counted(b'["orders","A"]') == {"stream": "orders", "event_type": "A", "kind": ""}


def test_the_table_is_there_without_the_matcher():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [" ".join(RESULT_KINDS), ""]
