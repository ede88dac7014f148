"""Joins in shards: against all combinations, in any number of shards, cut anyhow."""

from dataclasses import replace
from itertools import product
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import DERIVED, OperatorRefused, ShardState
from shards.inline import InlineShards
from shards.kinds.joins import JoinKind, merged_stream
from streams import Event, EventBatch, Input, OperatorOn, StreamDeclaration, StreamOn, Tick

STREAMS = {
    "orders": StreamDeclaration(name="orders"),
    "parcels": StreamDeclaration(name="parcels", keys={"order": "data.order"}),
    "payments": StreamDeclaration(name="payments"),
}
KIND = JoinKind()


def started(shards, *documents):
    """Shards in which joins run."""
    run = InlineShards(shards)
    names = [name for document in documents for name in (document["name"], merged_stream(document["name"]))]
    streams = STREAMS | {name: StreamDeclaration(name=name, derived=True) for name in names}
    for declaration in streams.values():
        run.append_record(declaration.name, StreamOn(declaration))
    for document in documents:
        definition = KIND.read(document, streams.__getitem__)
        for one in (definition, *KIND.parts(definition, streams.__getitem__)):
            (source,) = one.inputs
            run.append_record(source.stream, OperatorOn(replace(one, version=1), "fresh"))
    run.settle()
    return run


def found(rows, name):
    """The data of the events of a derived stream, with their times."""
    bodies = [orjson.loads(row.body) for block in rows if block.found.kind is DERIVED for row in block]
    return sorted((body["time"], orjson.dumps(body["data"])) for body in bodies if body["into"] == name)


events = st.lists(
    st.tuples(
        st.sampled_from(["orders", "parcels", "payments"]), st.integers(0, 3), st.sampled_from("abc"), st.integers(0, 9)
    ),
    max_size=30,
)


def fed(made):
    """Events by stream, with their places."""
    time, all_of_them = 0, []
    for number, (stream, step, key, value) in enumerate(made):
        time += step
        key_of_stream = f"x{value}" if stream == "parcels" else key
        data = {"n": number, "order": key}
        all_of_them.append((stream, Event(id=f"e{number}", type="T", time_us=time, key=key_of_stream, data=data)))
    return all_of_them


def pushed(run, all_of_them, cuts):
    """Rows of feeding events one after the other, some shards matching now and then."""
    rows = []
    routes = {"parcels": "order"} if any(("parcels", "order") in state._places for state in run.states) else {}
    for number, (stream, event) in enumerate(all_of_them):
        batch = EventBatch.from_events([event])
        run.feed(stream, batch)
        if stream in routes:
            run.feed(stream, batch.keyed_by((routes[stream],)), routes[stream])
        if number in cuts:
            rows += run.settle()
    return rows + run.finish()


ALL: dict[str, Any] = {
    "name": "all",
    "inputs": [
        {"stream": "orders", "as": "o", "window": "5 us"},
        {"stream": "payments", "as": "p", "window": "3 us"},
        {"stream": "parcels", "as": "q", "key": "order"},
    ],
    "window": "4 us",
    "return": {"o": "o.n", "p": "p.n", "q": "q.n"},
}


def expected(all_of_them, spans):
    """All combinations of one key in their windows."""
    of = {name: [event for stream, event in all_of_them if stream == name] for name in spans}
    for members in product(*of.values()):
        keys = {event.data["order"] for event in members}
        last = max(event.time_us for event in members)
        if len(keys) == 1 and all(
            last - event.time_us < span for event, span in zip(members, spans.values(), strict=True)
        ):
            yield [event.data["n"] for event in members]


@settings(max_examples=60, deadline=None)
@given(events, st.sets(st.integers(0, 30)), st.sampled_from(["order", "data.other"]), st.sampled_from([1, 3]))
def test_a_join_finds_all_combinations_in_their_windows(made, cuts, key, shards):
    document = {**ALL, "inputs": [*ALL["inputs"][:2], {**ALL["inputs"][2], "key": key}]}
    all_of_them = fed(made)
    for _, event in all_of_them:
        event.data["other"] = event.data["order"]
    rows = pushed(started(shards, document), all_of_them, cuts)
    values = sorted(list(orjson.loads(data).values()) for _, data in found(rows, "all"))
    assert values == sorted(expected(all_of_them, {"orders": 5, "payments": 3, "parcels": 4}))


TOTALS = {
    "name": "totals",
    "inputs": [
        {"stream": "orders", "as": "o", "closed_by": "unique"},
        {"stream": "payments", "as": "p", "window": "1 h", "closed_by": [{"type": "Last"}, "end"]},
    ],
    "emit": "on_close",
    "outer": ["p"],
    "return": {"order": "o.n", "payments": "count(p)", "sum": "sum(p.n)"},
}


def test_totals_are_emitted_once_a_key_is_finished():
    run = started(2, TOTALS)
    made = [
        ("orders", Event(id="o1", type="Order", time_us=1, key="a", data={"n": 7})),
        ("orders", Event(id="o2", type="Order", time_us=2, key="b", data={"n": 8})),
        ("payments", Event(id="p1", type="Part", time_us=3, key="a", data={"n": 20})),
        ("payments", Event(id="p2", type="Last", time_us=4, key="a", data={"n": 30})),
        ("payments", Event(id="p3", type="Part", time_us=5, key="a", data={"n": 40})),
    ]
    rows = pushed(run, made, {0, 1, 2, 3, 4})
    totals = [orjson.loads(data) for _, data in found(rows, "totals")]
    assert {"order": 7, "payments": 2, "sum": 50} in totals
    assert {"order": 8, "payments": 0, "sum": None} in totals
    assert len(totals) == 2


SENT = {
    "name": "sent",
    "inputs": [
        {"stream": "orders", "as": "o", "closed_by": "unique"},
        {"stream": "parcels", "as": "q", "key": "order", "window": "2 us", "closed_by": {"type": "Last"}},
    ],
    "return": {"order": "o.n"},
}
UNSENT = {
    "name": "unsent",
    "inputs": [
        {"stream": "sent", "as": "s", "closed_by": "end"},
        {"stream": "payments", "as": "p", "closed_by": "unique"},
    ],
    "outer": ["s"],
    "return": {"order": "s.order", "payment": "p.n"},
}


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, 9)), st.sampled_from([1, 3]))
def test_a_join_behind_a_join_knows_which_keys_are_finished(cuts, shards):
    made = [
        ("payments", Event(id=f"p{key}", type="Payment", time_us=1, key=key, data={"n": place}))
        for place, key in enumerate("abc")
    ]
    made.append(("orders", Event(id="o", type="Order", time_us=2, key="a", data={"n": 7})))
    made += [
        ("parcels", Event(id=f"q{key}", type="Last", time_us=3, key="x", data={"order": key, "n": 1})) for key in "ab"
    ]
    made += [(stream, Event(id="z", type="Z", time_us=9, key="z", data={"n": 0, "order": "z"})) for stream in STREAMS]
    rows = pushed(started(shards, SENT, UNSENT), made, cuts)
    told = [(time[-7:-1], orjson.loads(data)) for time, data in found(rows, "unsent")]
    assert ("000003", {"order": 7, "payment": 0}) in told
    assert ("000005", {"order": None, "payment": 1}) in told  # the last parcel of b has left its window
    assert [one for one in told if one[1]["payment"] == 2] == [("000009", {"order": None, "payment": 2})]


def test_columns_keep_their_order_when_a_state_is_saved():
    columns = {"sum": "sum(p.n)", "payments": "count(p)", "order": "o.n", "most": "max(p.n)"}  # not by the alphabet
    run = started(1, {**TOTALS, "return": columns})
    made = [
        ("orders", Event(id="o1", type="Order", time_us=1, key="a", data={"n": 7})),
        ("payments", Event(id="p1", type="Part", time_us=2, key="a", data={"n": 20})),
        ("payments", Event(id="p2", type="Part", time_us=3, key="a", data={"n": 30})),
        ("orders", Event(id="o2", type="Order", time_us=4, key="b", data={"n": 8})),
        ("payments", Event(id="p3", type="Last", time_us=5, key="a", data={"n": 4})),
    ]
    rows = []
    for one in made:
        rows += pushed_on(run, one)
        run.states = [ShardState.load(state.dump()) for state in run.states]
    totals = [data for _, data in found([*rows, *run.finish()], "totals")]
    assert totals == [
        b'{"sum":54,"payments":3,"order":7,"most":30}',
        b'{"sum":null,"payments":0,"order":8,"most":null}',
    ]


@settings(max_examples=20, deadline=None)
@given(events, st.sets(st.integers(0, 30)), st.sampled_from([1, 3]))
def test_expressions_are_of_the_members_of_a_combination(made, cuts, shards):
    returns = {"text": "concat(o.order, '-', upper(p.order))", "q": "q.n", "sum": "o.n + abs(p.n)"}
    returns |= {"gap": "(time(p) - time(o)) / 1 us", "any": "any(o.list, value = 3)"}
    where = "sum(o.list, value) >= 0 AND any(p.list, value > 2)"
    all_of_them = fed(made)
    for _, event in all_of_them:
        event.data["list"] = [event.data["n"], "x"] if event.data["n"] % 3 == 0 else [event.data["n"]]
    rows = pushed(started(shards, {**ALL, "return": returns, "where": where}), all_of_them, cuts)
    by_number = {event.data["n"]: event for _, event in all_of_them}
    wanted = []
    for o, p, q in expected(all_of_them, {"orders": 5, "payments": 3, "parcels": 4}):
        if o % 3 and p > 2:
            key, gap = by_number[o].data["order"], by_number[p].time_us - by_number[o].time_us
            wanted.append([f"{key}-{key.upper()}", q, o + p, gap, o == 3])
    assert sorted(list(orjson.loads(data).values()) for _, data in found(rows, "all")) == sorted(wanted)


@pytest.mark.parametrize("is_saved", [False, True])
def test_expressions_are_of_the_totals_of_a_key(is_saved):
    columns = {"mean": "round(sum(p.n) / count(p), 1)", "order": "o.n", "hour": "hour(time(o), 'Europe/Berlin')"}
    columns |= {"gap": "(time(p) - time(o)) / 1 us", "word": "CASE WHEN max(p.n) > 20 THEN 'much' ELSE o.n END"}
    columns |= {"more": "distinct(p.n) * 10", "few": "distinct(p.n) < 3 OR o.n = 7"}
    run, rows = started(1, {**TOTALS, "return": columns}), []
    made = [
        ("orders", Event(id="o1", type="Order", time_us=1, key="a", data={"n": 7})),
        ("payments", Event(id="p1", type="Part", time_us=2, key="a", data={"n": 20})),
        ("orders", Event(id="o2", type="Order", time_us=4, key="b", data={"n": 8})),
        ("payments", Event(id="p2", type="Part", time_us=5, key="a", data={"n": 30})),
        ("payments", Event(id="p3", type="Last", time_us=6, key="a", data={"n": 5})),
    ]
    for one in made:
        rows += pushed_on(run, one)
        if is_saved:
            run.states = [ShardState.load(state.dump()) for state in run.states]
    assert [data for _, data in found([*rows, *run.finish()], "totals")] == [
        b'{"mean":18.3,"order":7,"hour":1,"gap":1.0,"word":"much","more":30.0,"few":true}',
        b'{"mean":null,"order":8,"hour":1,"gap":null,"word":8,"more":0.0,"few":true}',
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"return": {"x": "lower(z.n)"}}, "line 1, column 7: z is not an alias that is known here"),
        ({"return": {"x": "o.n +"}}, r"'return' of a join, 'o.n \+': line 1, column 6: the text ends; "),
        ({"return": {"x": "median(o.n)"}}, "line 1, column 1: median is not a function"),
        ({"return": {"x": "lower(5)"}}, "text of lower\\(text\\) is a text, and 5 is a number"),
        ({"return": {"x": "sum(p.n + p.m)"}}, "sum takes an attribute here, as in sum\\(a.price\\)"),
        ({"emit": "each", "return": {"x": "1 + sum(p.n)"}}, "sum reads several events, and a combination has one"),
        ({"return": {"x": "sum(p.list, o.n)"}}, "names in the last argument of sum are of the elements"),
        ({"return": {"x": "distinct(p) + 1"}}, r"column 1: write distinct as in distinct\(a.price\)"),
        ({"emit": "each", "return": {"x": "decided_by(p.n) = 'a'"}}, r"write decided_by as in decided_by\(a\)"),
    ],
)
def test_expressions_without_a_value_are_refused(document, message):
    with pytest.raises(OperatorRefused, match=message):
        KIND.read({**TOTALS, **document}, STREAMS.__getitem__)


def pushed_on(run, one):
    """Rows of one more event."""
    stream, event = one
    run.feed(stream, EventBatch.from_events([event]))
    return run.settle()


def test_the_state_of_a_join_is_empty_once_all_keys_are_finished():
    run = started(1, TOTALS)
    empty = len(run.states[0].dump())
    made = [("orders", Event(id=f"o{n}", type="Order", time_us=n, key=f"k{n}", data={"n": n})) for n in range(200)]
    made += [
        ("payments", Event(id=f"p{n}", type="Last", time_us=200 + n, key=f"k{n}", data={"n": n})) for n in range(200)
    ]
    for stream, event in made:
        run.feed(stream, EventBatch.from_events([event]))
    for stream in ("orders", "payments"):
        run.append_record(stream, Tick(time_us=1_000, cause="events"))
    run.settle()
    (state,) = run.states
    place = state._places[merged_stream("totals"), ""]
    measured = place.measures()
    assert (measured["join_stored"], measured["join_keys"], measured["join_open_totals"]) == (0, 0, 0)
    assert measured["open_traces"] == 0
    assert len(place.host("join").dump().sections["0/join/counters"]) > 0
    assert len(state.dump()) > empty  # traces of the streams themselves stay open


def test_inputs_of_a_join_are_operators_with_one_input_each():
    definition = KIND.read(ALL, STREAMS.__getitem__)
    parts = KIND.parts(definition, STREAMS.__getitem__)
    assert definition.inputs == (Input("all.inputs"),)
    parcels = [(Input("parcels", "order"),), (Input("parcels"),)]  # the second has the events without that key
    assert [one.inputs for one in parts] == [(Input("orders"),), (Input("payments"),), *parcels]


def settled(all_of_them, cuts):
    """What a join of two streams finds, and in how many blocks of rows, with cuts behind some events."""
    inputs = [{"stream": "orders", "as": "o"}, {"stream": "payments", "as": "p", "window": "3 us"}]
    document = {"name": "two", "inputs": inputs, "window": "4 us", "return": {"o": "o.n", "p": "p.n"}}
    rows = pushed(started(1, document), all_of_them, cuts)
    return found(rows, "two"), sum(block.found.kind is DERIVED for block in rows)


def test_entries_of_streams_that_take_turns_are_matched_together_unless_an_event_is_late():
    names = ["orders", "payments"] * 20
    in_order = fed([(name, 1, "a", 0) for name in names])
    whole, each = settled(in_order, set()), settled(in_order, set(range(40)))
    assert whole[0] == each[0]
    assert len(whole[0]) == 39 + 19  # of payments with the two orders before them, of orders with one payment
    assert whole[1] <= 3
    assert each[1] > 30
    late = fed([(name, -25 if number == 30 else 1, "a", 0) for number, name in enumerate(names)])
    whole, each = settled(late, set()), settled(late, set(range(40)))
    assert whole[0] == each[0]
    assert whole[1] > 10


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["orders", "payments"]), st.integers(-3, 3), st.sampled_from("ab"), st.just(0)),
        max_size=30,
    ),
    st.sets(st.integers(0, 30)),
    st.booleans(),
)
def test_cuts_between_events_that_may_be_late_change_nothing(made, cuts, is_in_order):
    steps = [(name, abs(step) if is_in_order else step, key, value) for name, step, key, value in made]
    all_of_them = [(name, replace(event, time_us=event.time_us + 100)) for name, event in fed(steps)]
    assert settled(all_of_them, cuts)[0] == settled(all_of_them, set())[0] == settled(all_of_them, set(range(30)))[0]


MARKED = {
    "name": "marked",
    "inputs": [
        {"stream": "orders", "as": "o", "type": "Order", "closed_by": {"type": "End"}},
        {"stream": "payments", "as": "p", "type": "Part", "window": "1 h", "closed_by": {"type": "Last"}},
    ],
    "return": {"order": "id(o)", "payment": "id(p)"},
}


@pytest.mark.parametrize("key", [None, "data.order"])
@pytest.mark.parametrize("emit", ["each", "on_close"])
def test_an_event_of_a_closing_type_that_takes_no_part_only_finishes_its_key(key, emit):
    document: Any = {**MARKED, "emit": emit}
    if key is not None:
        document["inputs"] = [{**one, "key": key} for one in document["inputs"]]
    if emit == "on_close":
        document["return"] = {"orders": "count(o)", "payments": "count(p)"}
    kinds = ["Order", "Part", "Last", "Part", "End", "Order"]
    made = [
        (
            "orders" if kind in ("Order", "End") else "payments",
            Event(id=f"e{place}", type=kind, time_us=place, key="a", data={"order": "a"}),
        )
        for place, kind in enumerate(kinds)
    ]
    run = started(2, document)
    rows = pushed(run, made, {1, 3})
    joined = [orjson.loads(data) for _, data in found(rows, "marked")]
    bodies = [orjson.loads(row.body) for block in rows for row in block if row.kind == "dead-letter"]
    assert [one["event_id"] for one in bodies] == ["e3"]  # the second Order begins a key anew
    assert joined == ([{"order": "e0", "payment": "e1"}] if emit == "each" else [{"orders": 1, "payments": 1}])


UNUSUAL: list[Any] = [None, "", 0.5, True, [], 1.0, "b", 2]
REKEYED = {
    "name": "rekeyed",
    "inputs": [
        {"stream": "orders", "as": "o", "closed_by": "unique", "window": "1 h"},
        {"stream": "payments", "as": "p", "key": "data.order", "window": "1 h"},
    ],
    "outer": ["o"],
    "return": {"order": "id(o)", "payment": "id(p)", "why": "decided_by(o)", "how": "coalesce(decided_by(o), 'found')"},
}


def unusual_events():
    """An order 1, and payments by whatever a key may be."""
    made = [("orders", Event(id="o1", type="O", time_us=1, key="1", data={}))]
    return made + [
        ("payments", Event(id=f"p{place}", type="P", time_us=2 + place, key="x", data={"order": key, "v": place}))
        for place, key in enumerate(UNUSUAL)
    ]


@pytest.mark.parametrize("shards", [1, 3])
def test_events_without_a_usable_key_are_reported_alone_and_counted(shards):
    run = started(shards, REKEYED)
    rows = pushed(run, unusual_events(), {1, 3, 5})
    pairs = {
        one["payment"]: (one["order"], one["why"]) for _, data in found(rows, "rekeyed") for one in [orjson.loads(data)]
    }
    assert all(
        one["how"] == (one["why"] or "found") for _, data in found(rows, "rekeyed") for one in [orjson.loads(data)]
    )
    alone = {f"p{place}": (None, "no_key") for place in range(5)}
    assert pairs == alone | {"p5": ("o1", None), "p6": (None, "end_of_input"), "p7": (None, "end_of_input")}
    counted = sum(state.measures()["rekeyed.inputs"].get("join_p:without_key", 0) for state in run.states)
    assert counted == 5


def test_events_without_a_usable_key_have_totals_of_their_own():
    document: Any = {**REKEYED, "emit": "on_close", "return": {"orders": "count(o)", "sum": "sum(p.v)"}}
    rows = pushed(started(2, document), unusual_events(), {2})
    totals = [orjson.loads(data) for _, data in found(rows, "rekeyed")]
    assert [one for one in totals if one["orders"]] == [{"orders": 1, "sum": 5}]
    assert sorted(one["sum"] for one in totals if not one["orders"]) == [0, 1, 2, 3, 4, 6, 7]


def test_events_without_a_usable_key_join_nothing_where_no_input_may_be_absent():
    document = {name: value for name, value in REKEYED.items() if name != "outer"} | {"return": {"p": "id(p)"}}
    run = started(1, document)
    rows = pushed(run, unusual_events(), {2})
    assert [orjson.loads(data) for _, data in found(rows, "rekeyed")] == [{"p": "p5"}]
    saved = ShardState.load(run.states[0].dump())
    assert saved.measures()["rekeyed.inputs"]["join_p:without_key"] == 5
