"""Saved states of earlier releases, as recorded bytes: they load, and the shard continues unaffected."""

from pathlib import Path

import pytest

from shards.state import ShardState
from streams import ConstraintsOn, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step, event, log_of

GOLDEN = Path(__file__).parent / "golden"
KEYS = {"customer": "data.customer"}
STREAMS: list[Step] = [
    StreamOn(StreamDeclaration(name="orders", keys=KEYS, end_events=("End",), lateness=5, late="process")),
    PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, B b [x > 3])"),
    PatternOn(name="pair", version=2, text="PATTERN pair EVENT SEQ(A a, B b [x > 2])", start="migrate"),
    PatternOn(name="quiet", version=1, text="PATTERN quiet EVENT SEQ(A a, NOT B) WITHIN 9 s", is_guarded=False),
    PatternOn(name="loyal", version=1, text="PATTERN loyal EVENT SEQ(A a, A b) WHERE [customer]", route="customer"),
    ConstraintsOn(name="orders", version=1, document={"exclusive": [["L", "B"]]}),
]


def happened(number: int, event_type: str, key: str, **data):
    return event(number, event_type, key, customer=f"c{number % 2}", **data)


BEFORE: list[Step] = [
    *STREAMS,
    [happened(1, "A", "k"), happened(2, "A", "l"), happened(9, "B", "k", x=4), happened(0, "A", "m")],
    ConstraintsOn(name="orders", version=2, document={"prior": [["A", "B"]]}),
    [happened(8, "L", "l"), happened(12, "A", "n")],
]
AFTER: list[Step] = [
    [happened(13, "B", "n", x=1), happened(14, "B", "l", x=9), happened(15, "A", "k"), happened(20, "End", "k")],
    PatternOn(name="late", version=1, text="PATTERN late EVENT B b"),
    [happened(31, "B", "m", x=3), happened(32, "A", "n"), happened(60, "A", "o")],
]


def cut():
    entries = log_of([*BEFORE, *AFTER])[0]
    border = len(log_of(BEFORE)[0])
    return entries[:border], entries[border:]


@pytest.mark.parametrize("format_", [1, 2])
def test_recorded_state_goes_on_as_if_nothing_had_happened(format_):
    before, after = cut()
    whole = ShardState(0)
    assert [row.kind for row in whole.apply(before)] == ["alert"]
    loaded = ShardState.load((GOLDEN / f"state-v{format_}.bin").read_bytes())
    assert loaded.position == before[-1].position
    expected = whole.apply(after)
    assert {"alert", "ending", "deviation"} <= {row.kind for row in expected}
    assert loaded.apply(after) == expected
    assert loaded.measures()["orders"]["events"] == whole.measures()["orders"]["events"]
