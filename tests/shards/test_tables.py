"""Reference tables in a shard: a version holds from its place of the log on, however the log is cut and replayed."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.inline import InlineShards
from shards.kinds.aggregates import AggregateKind
from shards.kinds.joins import JoinKind
from shards.state import ShardState
from streams import EventBatch, OperatorOn, PatternOn, StreamDeclaration, StreamOn, TableOff, TableOn, TableRow, Tick
from streams.tables import TableDeclaration, TableFiles, TableMissing, ValueType, keep_table
from tests.builders.shards import Step, bodies, event, log_of

ORDERS = StreamDeclaration(name="orders")
CONDITION = "v > lookup(limits, who).most AND NOT who IN TABLE barred"
BIG = PatternOn(
    name="big", version=1, text=f"PATTERN big EVENT A a [{CONDITION}] RETURN lookup(limits, a.who).most AS m"
)
GROWN = PatternOn(
    name="grown",
    version=1,
    text="PATTERN grown EVENT SEQ(A a, A b [v > lookup(limits, a.who).most AND who = a.who])",
)
WHO = ("x", "y", "z")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Makes a version of a table from its rows."""
    folder = tmp_path_factory.mktemp("tables")

    def make(name, version, rows):
        path = folder / "rows.csv"
        columns = "who,most" if name == "limits" else "who"
        lines = [f"{who},{'' if most is None else most}" if name == "limits" else who for who, most in rows.items()]
        path.write_text("\n".join([columns, *lines, ""]))
        types: dict[str, ValueType] = {"most": "integer"} if name == "limits" else {}
        return replace(keep_table(path, "csv", TableDeclaration(key=("who",), types=types)), name=name, version=version)

    return make


MOST = st.none() | st.integers(0, 4)
ROWS = st.dictionaries(st.sampled_from(WHO), MOST)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("limits"), ROWS),
        st.tuples(st.just("barred"), ROWS),
        st.tuples(st.just("row"), st.tuples(st.sampled_from(WHO), st.none() | st.tuples(MOST))),
        st.tuples(st.just("gone"), st.none()),
        st.tuples(st.just("event"), st.tuples(st.sampled_from((*WHO, None)), st.integers(0, 5))),
    ),
    max_size=25,
)


def naive(steps):
    """The events that ``big`` and ``grown`` bind, and what RETURN reads, by plain dictionaries."""
    limits: dict[str, int | None] = {}
    barred: dict[str, int | None] = {}
    is_known, big, grown = False, [], []
    seen: list[tuple[int, str, int | None]] = []
    for number, (kind, what) in enumerate(steps, start=1):
        if kind == "limits":
            limits, is_known = dict(what), True
        elif kind == "barred":
            barred = dict(what)
        elif kind == "gone":
            limits, is_known = {}, False
        elif kind == "row" and is_known:
            limits.pop(what[0], None)
            limits |= {} if what[1] is None else {what[0]: what[1][0]}
        elif kind == "event":
            who, value = what
            most = limits.get(who)
            grown += [(one, number) for one, by, then in seen if by == who and then is not None and value > then]
            if most is not None and value > most and who not in barred:
                big.append((number, most))
            seen.append((number, who, most))
    return big, grown


def log_with(steps, kept):
    """The log of steps; table records belong to no stream."""
    records: list[Step] = [StreamOn(ORDERS), TableOn(kept("barred", 1, {})), BIG, GROWN]
    versions = 1
    for number, (kind, what) in enumerate(steps, start=1):
        versions += 1
        if kind in ("limits", "barred"):
            records.append(TableOn(kept(kind, versions, what)))
        elif kind == "row":
            who, row = what
            records.append(TableRow(name="limits", version=1, key=who, row=None if row is None else (who, *row)))
        elif kind == "gone":
            records.append(TableOff("limits"))
        else:
            records.append([event(number, "A", who=what[0], v=what[1])])
    (entries,) = log_of(records).values()
    return [replace(one, stream="") if one.kind.value.startswith("table") else one for one in entries]


def results_of(rows):
    alerts = bodies(rows, "alert")
    big = [(int(one["bindings"]["a"][0][1:]), one["returns"]["m"]) for one in alerts if one["pattern"] == "big"]
    pairs = [one["bindings"] for one in alerts if one["pattern"] == "grown"]
    return sorted(big), sorted((int(one["a"][0][1:]), int(one["b"][0][1:])) for one in pairs)


@given(steps=STEPS, cuts=st.sets(st.integers(1, 30)), saves=st.sets(st.integers(1, 30)))
@settings(max_examples=200)
def test_each_event_reads_the_tables_of_its_place_in_every_cut(kept, steps, cuts, saves):
    entries = log_with(steps, kept)
    state, rows, first = ShardState(0), [], 0
    for end in sorted({*cuts, *saves, len(entries)}):
        rows += state.apply(entries[first:end])
        first = max(first, min(end, len(entries)))
        if end in saves:
            state = ShardState.load(state.dump(), files=TableFiles())
            rows += state.apply(entries[max(0, first - 2) : first])
    big, grown = naive(steps)
    assert results_of(rows) == (sorted(big), sorted(grown))
    whole = ShardState(0)
    again = whole.apply(entries)
    assert [row.body for row in again if row.kind == "alert"] == [row.body for row in rows if row.kind == "alert"]
    assert whole.dump() == state.dump()


def test_events_that_wait_for_older_ones_read_the_tables_of_their_release(kept):
    late = replace(ORDERS, lateness=10)
    records: list[Step] = [StreamOn(late), TableOn(kept("barred", 1, {})), TableOn(kept("limits", 1, {"x": 1})), BIG]
    waiting = [event(5, "A", who="x", v=2)]
    (entries,) = log_of(
        [*records, waiting, TableOn(kept("limits", 2, {"x": 3})), Tick(time_us=60_000_000, cause="clock")]
    ).values()
    assert bodies(ShardState(0).apply(entries), "alert") == []
    (entries,) = log_of([*records, waiting, Tick(time_us=60_000_000, cause="clock")]).values()
    (alert,) = bodies(ShardState(0).apply(entries), "alert")
    assert alert["returns"] == {"m": 1}


def test_shards_that_are_divided_keep_their_tables(kept):
    records: list[Step] = [StreamOn(ORDERS), TableOn(kept("barred", 1, {})), TableOn(kept("limits", 1, {"x": 1})), BIG]
    (entries,) = log_of([*records, TableRow(name="limits", version=1, key="y", row=("y", 2))]).values()
    state = ShardState(0)
    state.apply(entries)
    for part in state.split(1, 4):
        assert part.tables.to_json() == state.tables.to_json()


def test_a_shard_without_the_content_of_a_table_stops(kept):
    lost = replace(kept("limits", 1, {}), digest="0" * 40)
    (entries,) = log_of([StreamOn(ORDERS), TableOn(lost)]).values()
    with pytest.raises(TableMissing, match="0000"):
        ShardState(0).apply(entries)


def test_a_row_of_an_unknown_table_is_a_dead_letter():
    (entries,) = log_of([StreamOn(ORDERS), TableRow(name="none", version=1, key="y", row=None)]).values()
    (row,) = ShardState(0).apply(entries)
    assert orjson.loads(row.body)["reason"] == "no table is called 'none'; there are no tables"


def test_the_places_of_derived_streams_and_further_keys_read_tables(kept):
    shards = InlineShards(2)
    keyed = replace(ORDERS, keys={"who": "data.who"})
    shards.append_record("orders", StreamOn(keyed))
    shards.append_record("rich", StreamOn(StreamDeclaration(name="rich", derived=True)))
    shards.append_record("", TableOn(kept("limits", 1, {"x": 1, "y": 3})))
    shards.append_record("", TableOn(kept("barred", 1, {"x": None})))
    feeding = "PATTERN feeding EVENT A a [v > lookup(limits, who).most] RETURN a.who AS who, a.v AS v INTO rich KEY who"
    shards.append_record("orders", PatternOn(name="feeding", version=1, text=feeding))
    reading = "PATTERN reading EVENT feeding f [v < 2 * lookup(limits, who).most + 3]"
    shards.append_record("rich", PatternOn(name="reading", version=1, text=reading))
    of_key = PatternOn(
        name="of_key", version=1, text=f"PATTERN of_key EVENT A a [{CONDITION}] WHERE [who]", route="who"
    )
    shards.append_record("orders", of_key)
    events = [event(1, "A", "k1", who="x", v=2), event(2, "A", "k2", who="y", v=9), event(3, "A", "k3", who="y", v=4)]
    rows = shards.feed_and_decide("orders", EventBatch.from_events(events), {"who": keyed.attribute_of("who")})
    rows += shards.settle() + shards.finish()
    alerts = [orjson.loads(row.body) for block in rows for row in block if row.kind == "alert"]
    assert sorted((one["pattern"], one["key"]) for one in alerts) == [
        ("of_key", "y"),
        ("of_key", "y"),
        ("reading", "x"),
        ("reading", "y"),
    ]


def derived_of(run, name):
    """Feeds events, and returns the data of those that an operator derives."""

    def feed(stream, *events):
        run.feed(stream, EventBatch.from_events(events))
        rows = [orjson.loads(row.body) for block in run.settle() for row in block if row.kind == "derived"]
        return [row["data"] for row in rows if row["into"] == name]

    return feed


@pytest.mark.parametrize("is_saved", [False, True])
def test_joins_read_the_tables_of_the_place_where_they_decide(kept, is_saved):
    document = {
        "name": "paid",
        "inputs": [{"stream": "orders", "as": "o"}, {"stream": "payments", "as": "p"}],
        "window": "1 h",
        "where": "p.v > lookup(limits, o.who).most AND NOT p.who IN TABLE barred",
        "return": {"who": "o.who", "over": "p.v - lookup(limits, o.who).most"},
    }
    run = InlineShards(1)
    streams = {name: StreamDeclaration(name=name) for name in ("orders", "payments")}
    streams |= {name: StreamDeclaration(name=name, derived=True) for name in ("paid", "paid.inputs")}
    for declaration in streams.values():
        run.append_record(declaration.name, StreamOn(declaration))
    definition = JoinKind().read(document, streams.__getitem__)
    assert {(one.table, one.column) for one in JoinKind().lookups(definition)} == {("limits", "most"), ("barred", None)}
    run.append_record("", TableOn(kept("barred", 1, {"z": None})))
    for one in (definition, *JoinKind().parts(definition, streams.__getitem__)):
        run.append_record(one.inputs[0].stream, OperatorOn(replace(one, version=1), "fresh"))
    feed = derived_of(run, "paid")

    def paid(number, who, value):
        if is_saved:
            run.states = [ShardState.load(state.dump(), files=TableFiles()) for state in run.states]
        found = feed("payments", event(number, "P", "k1", who=who, v=value))
        for stream in ("orders", "payments"):  # passes the time of both inputs
            found += feed(stream, event(number + 1, "A", f"{stream} only"))
        return found

    assert feed("orders", event(1, "A", "k1", who="x", v=0)) == []
    assert paid(2, "y", 9) == []  # no table of limits yet
    run.append_record("", TableOn(kept("limits", 1, {"x": 2})))
    assert paid(4, "y", 9) == [{"who": "x", "over": 7.0}]
    assert paid(6, "z", 9) == []
    run.append_record("", TableRow(name="limits", version=1, key="x", row=("x", 5)))
    assert paid(8, "y", 5) == []
    assert paid(10, "y", 6) == [{"who": "x", "over": 1.0}]


@pytest.mark.parametrize("window", [None, {"last": 5}])
def test_having_reads_the_tables_of_the_place_where_it_is_decided(kept, window):
    document = {
        "name": "much",
        "of": "orders",
        "by": ["who"],
        "values": {"total": "sum(v)"},
        "window": window or "1 h",
        "having": "total > lookup(limits, who).most",
        "clear": True,
    }
    run = InlineShards(1)
    streams = {"orders": ORDERS, "much": StreamDeclaration(name="much", derived=True)}
    streams["much.inputs"] = StreamDeclaration(name="much.inputs", derived=True)
    for declaration in streams.values():
        run.append_record(declaration.name, StreamOn(declaration))
    kind = AggregateKind()
    definition = kind.read(document, streams.__getitem__)
    assert [(one.table, one.column) for one in kind.lookups(definition)] == [("limits", "most")]
    run.append_record("", TableOn(kept("limits", 1, {"x": 3})))
    for one in (definition, *kind.parts(definition, streams.__getitem__)):
        run.append_record(one.inputs[0].stream, OperatorOn(replace(one, version=1), "fresh"))
    feed = derived_of(run, "much")

    def much(number, who, value):
        return feed("orders", event(number, "A", who=who, v=value), event(number + 1, "A", who="z", v=0))

    assert much(1, "x", 2) == []
    assert much(3, "y", 9) == []
    assert much(5, "x", 2) == [{"who": "x", "total": 4}]
    run.append_record("", TableOn(kept("limits", 2, {"x": 9})))
    run.states = [ShardState.load(state.dump(), files=TableFiles()) for state in run.states]
    assert much(7, "x", 1) == [{"who": "x", "total": 5}]  # no longer met
    assert much(9, "x", 5) == [{"who": "x", "total": 10}]


def test_a_lookup_of_a_constant_reads_the_table(kept):
    texts = {
        "step": "PATTERN step EVENT A a [v > lookup(limits, 'x').most]",
        "between": "PATTERN between EVENT SEQ(A a, A b [v > lookup(limits, 'x').most + a.v])",
        "whole": "PATTERN whole EVENT SEQ(A a, A b) WHERE a.v + b.v > lookup(limits, 'x').most AND 'x' IN TABLE limits",
    }
    records: list[Step] = [StreamOn(ORDERS), TableOn(kept("limits", 1, {"x": 3}))]
    records += [PatternOn(name=name, version=1, text=text) for name, text in texts.items()]
    (entries,) = log_of([*records, [event(1, "A", v=2), event(2, "A", v=5), event(3, "A", v=1)]]).values()
    alerts = bodies(ShardState(0).apply(entries), "alert")
    found = {name: [one["bindings"] for one in alerts if one["pattern"] == name] for name in texts}
    assert found == {
        "step": [{"a": ["e2"]}],
        "between": [],
        "whole": [{"a": ["e1"], "b": ["e2"]}, {"a": ["e2"], "b": ["e3"]}],
    }
