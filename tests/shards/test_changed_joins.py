"""Joins that change while they run keep what they hold: against the naive reading of one document, then the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from joins import JoinRefused, keeps_rows, read_join
from shards import InlineShards, RowBlock, ShardState
from shards.kinds.joins import JoinKind
from streams import Event, EventBatch, OperatorOn, Tick, format_time
from tests.shards.test_random_joins import (
    CONDITIONS,
    FAR_US,
    IDLE,
    IDLE_US,
    NAME,
    RANGE,
    RETRACTED,
    SEEN,
    STREAMS,
    Naive,
    begun,
    closings,
    documents,
    events,
    in_order,
    promise_of,
    takes_back,
    windows,
)

KIND = JoinKind()
CHANGED = "Changed"


def own(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "name"}


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A join, and another version that can continue with the events retained by the first."""
    before = draw(documents())
    inputs = [
        {
            **one,
            "window": draw(st.sampled_from([one["window"], draw(windows)])),
            "closed_by": draw(st.sampled_from([one["closed_by"], draw(closings)])),
        }
        for one in before["inputs"]
    ]
    returns = {f"now_{name}": value for name, value in before["return"].items()}
    after = {**before, "inputs": inputs, "return": returns, "type": CHANGED}
    is_known = bool(before["outer"]) and len(inputs) == 2  # a condition of such a join may only become another one
    if "where" in before or not before["outer"]:
        after["where"] = draw(st.sampled_from([*CONDITIONS, *([] if is_known else [None])]))
    try:
        read_join(own(after))
    except JoinRefused:
        assume(False)
    ends = [
        any(
            one["stream"] == "payments" and {"end", "punctuation"} & {*map(str, one["closed_by"])}
            for one in some["inputs"]
        )
        for some in (before, after)
    ]
    assume(ends[0] == ends[1])  # else it is not known when the open traces had their last event
    assert keeps_rows(read_join(own(before)), read_join(own(after)))
    return before, after


def changed(naive: Naive, document: Mapping[str, Any]) -> None:
    """Let a reading go on as that of another version."""
    inputs = read_join(own(document)).inputs
    both = zip(naive.inputs, inputs, strict=True)
    stays = ["clustered" in one.closings and "clustered" in other.closings for one, other in both]
    naive.newest = {number: key for number, key in naive.newest.items() if stays[number]}
    naive.inputs = inputs
    naive.join.change([one.window for one in inputs])
    naive.meet(document.get("where"))


def read_both(
    documents: tuple[Mapping[str, Any], Mapping[str, Any]], made: Sequence[tuple[str, Event]], at_us: int
) -> tuple[Naive, int, set[str]]:
    """The outcome, how much of it came before the change, and events of keys that all inputs had finished."""
    left_out: set[str] = set()
    while True:
        naive, before = Naive.of(documents[0]), -1
        old = naive.inputs
        for number, event in in_order(naive, [one for one in made if one[1].id not in left_out]):
            if event.time_us >= at_us and before < 0:
                naive.pass_time(at_us)
                before = len(naive.join.results)
                changed(naive, documents[1])
            if event.type == IDLE and event.time_us == at_us:  # found by the inputs as they were
                now, naive.inputs = naive.inputs, old
                naive.take(number, event)
                naive.inputs = now
                continue
            is_event = event.type not in (IDLE, RANGE) and not takes_back(naive.inputs[number], event)
            if is_event and naive.is_forgotten(number, event):
                left_out.add(event.id)
                break
            naive.take(number, event)
        else:
            if before < 0:
                naive.pass_time(at_us)
                before = len(naive.join.results)
                changed(naive, documents[1])
            naive.finish()
            return naive, before, left_out


def change(inline: InlineShards, document: Mapping[str, Any], *, is_cut: bool = False) -> list[RowBlock]:
    """Let every shard go on as another version, as the registry says it; ``is_cut``: saved and loaded in between."""
    join, rows = KIND.read(document, SEEN.__getitem__), list[RowBlock]()
    for one in (join, *KIND.parts(join, SEEN.__getitem__)):
        inline.append_record(one.inputs[0].stream, OperatorOn(replace(one, version=2), "keep"))
        if is_cut:
            rows += inline.settle()
            reloaded(inline)
    return rows


def reloaded(inline: InlineShards) -> None:
    inline.states[:] = [ShardState.load(state.dump()) for state in inline.states]


def fed(inline: InlineShards, stream: str, event: Event, documents: Sequence[Mapping[str, Any]]) -> None:
    if event.type == RANGE:
        inline.append_record(stream, promise_of(event))
        return
    batch = EventBatch.from_events([event])
    inline.feed(stream, batch)
    if stream == "parcels" and any(one.get("key") == "order" for some in documents for one in some["inputs"]):
        inline.feed(stream, batch.keyed_by(("order",)), "order")


def run_both(
    documents: tuple[Mapping[str, Any], Mapping[str, Any]],
    made: Sequence[tuple[str, Event]],
    at_us: int,
    shards: int,
    cuts: set[int],
) -> list[RowBlock]:
    """Rows of the events, the change behind those before a time, cuts at which everything is matched and reloaded."""
    inline, rows, is_changed = begun(documents[0], shards), list[RowBlock](), False
    is_rekeyed = any(one.get("key") == "data.other" for one in documents[0]["inputs"])
    far = [(name, Event(id=f"far-{name}", type="Z", time_us=FAR_US, key="far", data={})) for name in STREAMS]
    for number, (stream, event) in enumerate([*made, *far]):
        if event.time_us >= at_us and not is_changed:
            for name in STREAMS:
                inline.append_record(name, Tick(time_us=at_us, cause="events"))
            if is_rekeyed or 0 in cuts:  # what goes through the log has to have arrived
                rows += inline.settle()
                reloaded(inline)
            rows += change(inline, documents[1], is_cut=0 in cuts)
            is_changed = True
        fed(inline, stream, event, documents)
        if number in cuts:
            rows += inline.settle()
            reloaded(inline)
    return rows + inline.finish()


Said = tuple[str, str, list[Any]]


def found_in(rows: Sequence[RowBlock]) -> tuple[list[Said], list[Said]]:
    """Type, time and values of what was derived, and of what was taken back; the end of the input finishes keys."""
    bodies = [orjson.loads(row.body) for block in rows for row in block if row.kind == "derived"]
    derived = {body["id"]: body for body in bodies if body["into"] == NAME and "far-" not in str(body["data"])}

    def said(body: Mapping[str, Any]) -> Said:
        of = derived.get(body["data"].get("retracts"), body)
        values = ["finished" if one == "end_of_input" else one for one in of["data"].values()]
        return body["type"], body["time"], values

    every = sorted(map(said, derived.values()), key=str)
    is_back = [kind.endswith(RETRACTED) for kind, _, _ in every]
    return (
        [one for one, back in zip(every, is_back, strict=True) if not back],
        [one for one, back in zip(every, is_back, strict=True) if back],
    )


TAKES_TURNS: dict[str, Any] = {
    "name": NAME,
    "inputs": [
        {"stream": "payments", "as": "i0", "closed_by": ["end"], "window": "none"},
        {"stream": "payments", "as": "i1", "closed_by": [], "window": "none"},
    ],
    "return": {"r0": "id(i0)", "r1": "id(i1)"},
    "outer": [],
    "memory": {"rows": 1, "spill": True},
}
"""One input is finished with its traces before the change, and the other one from then on."""
HAS_TAKEN: dict[str, Any] = {
    **TAKES_TURNS,
    "inputs": [
        {**TAKES_TURNS["inputs"][0], "closed_by": []},
        {**TAKES_TURNS["inputs"][1], "closed_by": ["unique", "end"]},
    ],
    "return": {"now_r0": "id(i0)", "now_r1": "id(i1)"},
    "type": CHANGED,
}
IDLE_EVENTS = [
    ("payments", Event(id="e07", type="A", time_us=1, key="1", data={"k": "1"})),
    ("payments", Event(id="e11", type="A", time_us=1 + IDLE_US, key="1", data={"k": "1"})),
]


@settings(max_examples=150, deadline=None)
@example((TAKES_TURNS, HAS_TAKEN), IDLE_EVENTS, 2, 1, set())
@example((TAKES_TURNS, HAS_TAKEN), IDLE_EVENTS, 2, 1, {0})
@given(changes(), events(), st.integers(1, 30), st.sampled_from([1, 3]), st.sets(st.integers(0, 25), max_size=4))
def test_a_join_that_changes_goes_on_with_what_it_holds(
    documents: tuple[dict[str, Any], dict[str, Any]],
    made: list[tuple[str, Event]],
    at_us: int,
    shards: int,
    cuts: set[int],
) -> None:
    if any("clustered" in one["closed_by"] for document in documents for one in document["inputs"]):
        shards = 1  # an event of another key finishes one in the same shard only
    naive, before, left_out = read_both(documents, made, at_us)
    kept = [one for one in made if one[1].id not in left_out]
    rows = run_both(documents, kept, at_us, shards, cuts)
    said = naive.told()
    expected = [(NAME, *one) for one in said[:before]] + [(CHANGED, *one) for one in said[before:]]
    back = [
        (f"{NAME if place < before else CHANGED}{RETRACTED}", format_time(when), said[place][1])
        for when, place in naive.taken_back
    ]
    assert found_in(rows) == (sorted(expected, key=str), sorted(back, key=str))


TOTALS: dict[str, Any] = {
    "name": NAME,
    "inputs": [
        {"stream": "orders", "as": "o", "closed_by": "unique"},
        {"stream": "payments", "as": "p", "window": "1 h", "closed_by": {"type": "Last"}},
    ],
    "emit": "on_close",
    "return": {"order": "id(o)", "sum": "sum(p.v)"},
}


def payment(number: int, event_type: str = "Part", key: str = "a") -> tuple[str, Event]:
    return "payments", Event(id=f"p{number}", type=event_type, time_us=number, key=key, data={"v": number})


@pytest.mark.parametrize(
    ("start", "expected"), [("keep", {"all": 14, "n": 2, "first": "p4"}), ("fresh", None)], ids=["keep", "fresh"]
)
def test_totals_that_were_there_go_on_and_others_begin(start: Any, expected: Any) -> None:
    inline = begun(TOTALS, 2)
    fed(inline, "orders", Event(id="o1", type="Order", time_us=1, key="a", data={}), [])
    for one in (payment(2), payment(3)):
        fed(inline, *one, [])
    inline.append_record("orders", Tick(time_us=4, cause="events"))
    inline.append_record("payments", Tick(time_us=4, cause="events"))
    rows = inline.settle()
    after = {**TOTALS, "return": {"all": "sum(p.v)", "n": "count(p)", "first": "id(p)"}}
    join = KIND.read(after, STREAMS.__getitem__)
    for part in (join, *KIND.parts(join, STREAMS.__getitem__)):
        inline.append_record(part.inputs[0].stream, OperatorOn(replace(part, version=2), start))
    for made in (payment(4), payment(5, "Last")):
        fed(inline, *made, [])
    rows += inline.finish()
    data = [values for _, _, values in found_in(rows)[0]]
    assert data == ([] if expected is None else [list(expected.values())])


def test_what_waits_for_the_time_of_others_is_joined_by_the_version_to_come() -> None:
    document = {**TOTALS, "emit": "each", "window": "9 us", "return": {"o": "id(o)", "p": "id(p)"}}
    found = []
    for is_settled in (False, True):
        inline = begun(document, 1)
        fed(inline, "orders", Event(id="o1", type="Order", time_us=1, key="a", data={}), [])
        fed(inline, *payment(2), [])
        fed(inline, *payment(3), [])  # the time of orders is 1
        rows = inline.settle() if is_settled else []
        change(
            inline, {**document, "type": CHANGED, "inputs": [{**one, "window": "1 us"} for one in document["inputs"]]}
        )
        found.append(found_in(rows + inline.finish())[0])
    assert found == [[], []]


OTHER_INPUT = {"stream": "orders", "as": "o", "key": "data.k", "closed_by": "unique"}


@pytest.mark.parametrize(
    ("changed", "is_kept"),
    [
        ({}, True),
        ({"window": "3 h", "late": "drop", "type": "X", "return": {"n": "count(p)"}}, True),
        ({"inputs": [TOTALS["inputs"][0], {**TOTALS["inputs"][1], "closed_by": ["end", {"type": "X"}]}]}, True),
        ({"inputs": [TOTALS["inputs"][0], {**TOTALS["inputs"][1], "type": "Part"}]}, False),
        ({"inputs": [OTHER_INPUT, TOTALS["inputs"][1]]}, False),
        ({"inputs": [{**TOTALS["inputs"][0], "stream": "parcels"}, TOTALS["inputs"][1]]}, False),
        ({"inputs": TOTALS["inputs"][::-1]}, False),
        ({"outer": ["p"]}, False),
        ({"emit": "each", "return": {"o": "id(o)"}}, False),
    ],
)
def test_what_can_change_while_a_join_runs(changed: dict[str, Any], is_kept: bool) -> None:
    assert KIND.keeps(own(TOTALS), own({**TOTALS, **changed})) == is_kept


def test_a_part_of_the_name_of_a_closing_type_changes_no_types_of_its_input() -> None:
    one = {**TOTALS["inputs"][1], "type": ["Part", "Last"]}
    before = {**TOTALS, "inputs": [TOTALS["inputs"][0], one]}
    after = {**TOTALS, "inputs": [TOTALS["inputs"][0], {**one, "closed_by": "end"}]}
    assert KIND.keeps(own(before), own(after))
