"""What INTO does when a pattern is registered: streams are declared, cycles refused, uses known."""

from operator import attrgetter

import pytest

from constraints import UnsatisfiablePattern
from nfa import PatternRefused
from nfa.errors import TooManyRows
from service import Registration
from service.errors import (
    DerivationRefused,
    RegistryContended,
    StreamDerived,
    StreamInUse,
    StreamNotDerived,
    TableInUse,
    UnknownOperator,
    UnknownStream,
)
from service.intake.announcing import Announcing
from service.intake.posting import Intake
from service.registering.derivations import uses_of
from service.registering.operators import OperatorLibrary
from service.registering.tables import TableLibrary, TableUpload
from service.stores import StreamUse, pattern_draft
from shards import OperatorRefused
from streams import DERIVED_PROMISES_KEY, Punctuation, StreamDeclaration, TraceEnd
from streams.tables import TableDeclaration, TableUnknown
from tests.builders.races import before_commit, during_commit
from tests.builders.registering import register_pattern
from tests.builders.service import HandClock

pytestmark = pytest.mark.redis


@pytest.fixture
def registration(stores, settings, clock):
    registration = Registration(stores, settings, clock)
    registration.declare_stream(StreamDeclaration(name="orders", key="data.order"))
    return registration


def text(name, into, *, event="A a", more=""):
    return f"PATTERN {name} EVENT {event} RETURN a.c AS c INTO {into}{more}"


def warned(report):
    """The warnings that are about the derived stream."""
    return [one for one in report.warnings if "hints" in one]


def controls(stores):
    return [(entry.kind.value, entry.stream) for entry in stores.log.read_range(0)]


def test_the_first_pattern_declares_its_stream_before_it_starts(registration, stores):
    report = register_pattern(registration, "orders", text("late", "hints", more=" KEY c TYPE Late"))
    assert (report.pattern.into, warned(report)) == ("hints", [])
    assert stores.registry.stream("hints") == StreamDeclaration(name="hints", derived=True)
    assert controls(stores) == [("stream-on", "orders"), ("stream-on", "hints"), ("pattern-on", "orders")]
    register_pattern(registration, "orders", text("later", "hints"))
    assert controls(stores)[3:] == [("pattern-on", "orders")]
    for name in ("late", "later"):
        registration.move_pattern(name, "retire")
        registration.delete_pattern(name)
    assert stores.registry.stream("hints").derived


def test_a_draft_declares_nothing_until_it_is_activated(registration, stores):
    parsed = registration.read_pattern(text("late", "hints"), None)
    registration.register("orders", parsed, pattern_draft(name="", text=parsed.text, state="draft"))
    assert [stream.name for stream in stores.registry.streams()] == ["orders"]
    assert uses_of(stores.registry, "hints") == [StreamUse(kind="pattern", name="late", feeds=True)]
    registration.move_pattern("late", "activate")
    assert controls(stores)[1:] == [("stream-on", "hints"), ("pattern-on", "orders")]


def test_into_a_stream_of_posted_events_is_refused(registration, stores):
    registration.declare_stream(StreamDeclaration(name="payments"))
    with pytest.raises(StreamNotDerived, match="INTO payments: that stream takes posted events"):
        register_pattern(registration, "orders", text("late", "payments"))
    with pytest.raises(StreamNotDerived):
        register_pattern(registration, "orders", text("late", "orders"))
    assert len(controls(stores)) == 2


def test_cycles_and_long_chains_are_refused(registration, stores):
    for hop in range(16):
        register_pattern(registration, "orders" if not hop else f"s{hop}", text(f"p{hop + 1}", f"s{hop + 1}"))
    with pytest.raises(DerivationRefused, match="17 streams would be derived from each other, and at most 16"):
        register_pattern(registration, "s16", text("more", "s17"))
    with pytest.raises(DerivationRefused, match=r"INTO s2: .*s2 → s3"):
        register_pattern(registration, "s3", text("back", "s2"))
    with pytest.raises(DerivationRefused, match="INTO s4"):
        register_pattern(registration, "s4", text("self", "s4"))
    assert "s17" not in [stream.name for stream in stores.registry.streams()]
    register_pattern(registration, "s15", text("p16", "other"))  # its next version feeds another stream
    registration.move_pattern("p15", "retire")
    register_pattern(registration, "s16", text("more", "s17"))


def test_types_that_nobody_makes_are_warned_of(registration):
    registration.declare_stream(StreamDeclaration(name="hints", derived=True))
    assert warned(register_pattern(registration, "hints", "PATTERN q EVENT Late a")) == [
        "nothing feeds the derived stream 'hints' yet: no pattern has INTO hints"
    ]
    register_pattern(registration, "orders", text("late", "hints", more=" TYPE Late"))
    assert warned(register_pattern(registration, "hints", "PATTERN r EVENT SEQ(Late a, `Late.retracted` b)")) == []
    (warning,) = warned(register_pattern(registration, "hints", "PATTERN s EVENT Lato a"))
    assert "Lato (did you mean Late?) is none of the event types that patterns make for 'hints'" in warning


def test_a_producer_keeps_to_the_types_that_a_stream_declares(registration):
    registration.declare_stream(StreamDeclaration(name="hints", derived=True, event_types=("Late",)))
    with pytest.raises(DerivationRefused, match="late is none of the event types that the stream declares; add TYPE"):
        register_pattern(registration, "orders", text("late", "hints"))
    assert register_pattern(registration, "orders", text("late", "hints", more=" TYPE Late")).is_new


def test_who_uses_a_stream(registration, stores):
    register_pattern(registration, "orders", text("late", "hints"))
    register_pattern(registration, "hints", "PATTERN q EVENT late a")
    register_pattern(registration, "hints", "PATTERN r EVENT late a")
    registration.move_pattern("r", "retire")
    listening = StreamUse(kind="pattern", name="q", feeds=False)
    assert uses_of(stores.registry, "hints") == [StreamUse(kind="pattern", name="late", feeds=True), listening]
    assert uses_of(stores.registry, "orders") == [StreamUse(kind="pattern", name="late", feeds=False)]


def test_nobody_posts_events_or_times_to_a_derived_stream(registration, stores, settings, clock):
    register_pattern(registration, "orders", text("late", "hints"))
    before = controls(stores)
    intake = Intake(stores.log, stores.registry, settings.limits, clock)
    with pytest.raises(StreamDerived, match="operators make its events"):
        intake.ingest("hints", [{"id": "1"}])
    with pytest.raises(StreamDerived):
        intake.judge("hints", [{"id": "1"}])
    with pytest.raises(StreamDerived):
        Announcing(stores, HandClock()).punctuate("hints", Punctuation(before_us=5))
    assert controls(stores) == before
    Announcing(stores, HandClock()).end_trace("hints", TraceEnd(key="k"))


def test_a_derived_stream_is_not_deleted_while_something_feeds_it(stores, registration, clock):
    register_pattern(registration, "orders", text("late", "hints"))
    for is_cascading in (False, True):
        with pytest.raises(
            StreamInUse, match="delete the pattern late first; what feeds a derived stream is not removed with a stream"
        ):
            registration.remove_stream("hints", is_cascading=is_cascading)
    registration.delete_pattern("late")
    assert registration.remove_stream("hints") == []
    with pytest.raises(UnknownStream):
        stores.registry.stream("hints")


JOIN = {
    "name": "paid",
    "inputs": [{"stream": "orders", "as": "o"}, {"stream": "pays", "as": "p"}],
    "window": "24 h",
    "return": {"order": "id(o)"},
}


@pytest.mark.parametrize("interrupted", ["registry.removal.remove", "derived.forget"])
def test_an_interrupted_deletion_of_a_join_is_completed_by_the_next_one(
    stores, registration, clock, client, monkeypatch, interrupted
):
    registration.declare_stream(StreamDeclaration(name="pays", key="key"))
    library = OperatorLibrary(stores, clock)
    library.put("join", JOIN)
    assert stores.registry.stream("paid.inputs").derived
    promised = stores.derived._fields("paid.inputs")
    client.hset(DERIVED_PROMISES_KEY, mapping=dict.fromkeys(promised, "1"))
    with monkeypatch.context() as patch:
        owner, _, method = interrupted.rpartition(".")
        patch.setattr(attrgetter(owner)(stores), method, None)
        with pytest.raises(TypeError):
            library.remove("join", "paid")
    with pytest.raises(UnknownOperator):
        library.remove("join", "paid")
    assert "paid.inputs" not in {stream.name for stream in stores.registry.streams()}
    assert client.hmget(DERIVED_PROMISES_KEY, promised) == [None] * len(promised)


def test_no_pattern_feeds_a_stream_that_was_removed_meanwhile(registration, stores, monkeypatch):
    before_commit(monkeypatch, lambda: registration.remove_stream("hints"))
    with pytest.raises(RegistryContended, match="'hints'"):
        register_pattern(registration, "orders", text("late", "hints"))
    assert stores.registry.patterns() == []
    assert register_pattern(registration, "orders", text("late", "hints")).is_new
    assert stores.registry.stream("hints").derived


def test_no_pattern_is_registered_under_a_declaration_that_was_changed_meanwhile(registration, stores, monkeypatch):
    registration.change_stream("orders", {"end_events": ("Z",)})
    before_commit(monkeypatch, lambda: registration.change_stream("orders", {"end_events": ()}))
    with pytest.raises(RegistryContended, match="'orders'"):
        register_pattern(registration, "orders", "PATTERN p EVENT SEQ(A a, NOT B)")
    with pytest.raises(PatternRefused):
        register_pattern(registration, "orders", "PATTERN p EVENT SEQ(A a, NOT B)")


LOOKING = "PATTERN q EVENT SEQ(A a [v > lookup(limits, who).most], B b)"


@pytest.fixture
def limits(stores, settings, clock, tmp_path):
    """A function that uploads the table ``limits`` with a column, and returns the library of tables."""

    def upload(column):
        path = tmp_path / f"{column}.csv"
        path.write_text(f"who,{column}\nx,5\n")
        tables.put(TableUpload(name="limits", path=path, format="csv", declaration=TableDeclaration(key=("who",))))
        return tables

    tables = TableLibrary(stores, settings, clock)
    upload("most")
    return upload


def test_no_pattern_looks_up_a_table_that_was_deleted_meanwhile(registration, stores, limits, monkeypatch):
    before_commit(monkeypatch, lambda: limits("most").delete("limits"))
    with pytest.raises(TableUnknown):
        register_pattern(registration, "orders", LOOKING)
    assert stores.registry.patterns() == []


@pytest.mark.parametrize("change", ["delete", "replace"])
def test_a_table_stays_if_a_pattern_that_looks_it_up_is_registered_meanwhile(registration, limits, monkeypatch, change):
    tables = limits("most")
    during_commit(monkeypatch, lambda: register_pattern(registration, "orders", LOOKING))
    with pytest.raises(TableInUse, match=r"the pattern '?q'?"):
        _ = tables.delete("limits") if change == "delete" else limits("least")
    assert tables.table("limits").record.columns.keys() == {"most", "who"}


def test_no_count_of_uses_is_left_of_removed_streams_and_tables(registration, client, limits):
    register_pattern(registration, "orders", LOOKING)
    assert len(client.hgetall("forestall:uses")) == 3
    registration.delete_pattern("q")
    limits("most").delete("limits")
    registration.remove_stream("orders")
    assert client.hkeys("forestall:uses") == [b"removed streams"]


def test_end_events_stay_if_a_pattern_that_needs_them_is_registered_meanwhile(registration, stores, monkeypatch):
    registration.change_stream("orders", {"end_events": ("Z",)})
    during_commit(monkeypatch, lambda: register_pattern(registration, "orders", "PATTERN p EVENT SEQ(A a, NOT B)"))
    with pytest.raises(StreamInUse, match="'p'"):
        registration.change_stream("orders", {"end_events": ()})
    assert stores.registry.stream("orders").end_events == ("Z",)


def test_no_join_feeds_a_stream_that_was_removed_meanwhile(registration, stores, clock, monkeypatch):
    registration.declare_stream(StreamDeclaration(name="pays", key="key"))
    library = OperatorLibrary(stores, clock)
    before_commit(monkeypatch, lambda: registration.remove_stream("paid.inputs"))
    with pytest.raises(RegistryContended, match="inputs"):
        library.put("join", JOIN)
    assert library.put("join", JOIN)[1]
    assert stores.registry.stream("paid.inputs").derived


def draft_of(registration, text, **members):
    parsed = registration.read_pattern(text, None)
    return registration.register("orders", parsed, pattern_draft(name="", text=parsed.text, state="draft", **members))


def forbid(registration, event_type):
    """Let constraints say that no trace of ``orders`` has an event type."""
    registration.constraint_sets.upload("orders", {"constraints": [f"absence({event_type})"]})


@pytest.mark.parametrize("is_draft", [True, False])
def test_no_pattern_starts_under_a_constraint_set_that_it_was_not_checked_with(
    registration, stores, monkeypatch, is_draft
):
    described = "PATTERN p EVENT SEQ(A a, B b)"
    if is_draft:
        draft_of(registration, described)
    before_commit(monkeypatch, lambda: forbid(registration, "B"))
    with pytest.raises(RegistryContended, match="the constraint set of 'orders'"):
        _ = (
            registration.move_pattern("p", "activate")
            if is_draft
            else register_pattern(registration, "orders", described)
        )
    assert [pattern.state for pattern in stores.registry.patterns()] == ["draft"] * is_draft


def join_of(name, stream):
    inputs = [{"stream": stream, "as": "x", "key": "order"}, {"stream": "pays", "as": "p"}]
    return {**JOIN, "name": name, "inputs": inputs, "return": {"order": "id(p)"}}


@pytest.fixture
def circle(registration, stores, clock):
    """A library with the derived streams ``a`` and ``b``, from which two joins can be derived in a circle."""
    for name in ("a", "b"):
        registration.declare_stream(StreamDeclaration(name=name, derived=True))
    registration.declare_stream(StreamDeclaration(name="pays", key="key"))
    return OperatorLibrary(stores, clock)


def test_no_draft_is_activated_that_would_derive_streams_in_a_circle(circle):
    circle.put("join", join_of("a", "b"), state="draft")
    circle.put("join", join_of("b", "a"), state="draft")
    assert circle.move("join", "a", "activate")[0].state == "active"
    with pytest.raises(DerivationRefused):
        circle.move("join", "b", "activate")


@pytest.mark.parametrize("is_draft", [True, False])
def test_no_streams_are_derived_in_a_circle_by_two_registrations_at_once(circle, stores, monkeypatch, is_draft):
    if is_draft:
        circle.put("join", join_of("a", "b"), state="draft")
    before_commit(monkeypatch, lambda: circle.put("join", join_of("b", "a")))
    with pytest.raises(DerivationRefused):
        _ = circle.move("join", "a", "activate") if is_draft else circle.put("join", join_of("a", "b"))
    active = [operator.name for operator in stores.registry.operators("join").all() if operator.state == "active"]
    assert active == ["b"]


def test_a_draft_that_was_replaced_meanwhile_is_not_activated(registration, stores, monkeypatch):
    draft_of(registration, "PATTERN p EVENT SEQ(A a, B b)")
    before_commit(monkeypatch, lambda: draft_of(registration, "PATTERN p EVENT SEQ(A a, C c)"))
    with pytest.raises(RegistryContended, match="the pattern 'p'"):
        registration.move_pattern("p", "activate")
    assert stores.registry.pattern("p").state == "draft"


def test_a_draft_that_has_replaced_a_deleted_pattern_meanwhile_is_not_activated(registration, stores, monkeypatch):
    register_pattern(registration, "orders", "PATTERN p EVENT SEQ(A a, B b)")

    def replaced():
        registration.delete_pattern("p")
        draft_of(registration, "PATTERN p EVENT SEQ(A a, C c)")
        forbid(registration, "C")

    before_commit(monkeypatch, replaced)
    with pytest.raises(RegistryContended, match="the pattern 'p'"):
        registration.move_pattern("p", "activate")
    assert stores.registry.pattern("p").state == "draft"
    with pytest.raises(UnsatisfiablePattern):
        registration.move_pattern("p", "activate")


ASKED = {"name": "n", "of": "hints", "by": ["c"], "window": "1 h", "values": {"n": "count()"}, "ask": {"by": ["c"]}}


def test_an_asked_aggregate_and_a_pattern_that_may_retract_are_not_registered_at_once(
    registration, stores, clock, monkeypatch
):
    registration.declare_stream(StreamDeclaration(name="hints", derived=True))
    library = OperatorLibrary(stores, clock)
    before_commit(monkeypatch, lambda: register_pattern(registration, "orders", text("late", "hints")))
    with pytest.raises(OperatorRefused, match="never retracted"):
        library.put("aggregate", ASKED)
    registration.delete_pattern("late")
    library.put("aggregate", ASKED)
    with pytest.raises(DerivationRefused, match="never retracted"):
        register_pattern(registration, "orders", text("late", "hints"))


ROWS = "PATTERN r FOR EACH ROW OF limits t EVENT SEQ(A a [who = t.who], B b [who = t.who AND v > t.most])"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_row_too_many_is_refused_if_a_pattern_of_the_rows_is_registered_meanwhile(
    registration, stores, limits, monkeypatch, is_first
):
    monkeypatch.setattr("nfa.row_bounds.MOST_ROWS", 1)
    monkeypatch.setattr("nfa.row_bounds.MOST_ROWS_AT_ONCE", 1)
    tables = limits("most")
    change = {"most": 6}
    if is_first:
        before_commit(monkeypatch, lambda: tables.change_row("limits", ["y"], change))
        with pytest.raises(TooManyRows):
            register_pattern(registration, "orders", ROWS)
    else:
        during_commit(monkeypatch, lambda: register_pattern(registration, "orders", ROWS))
        with pytest.raises(TooManyRows):
            tables.change_row("limits", ["y"], change)
