from statistics import median
from unittest.mock import Mock

import pytest

from constraints import ContradictoryConstraints, InvalidConstraints, UnsatisfiablePattern, parse_constraints
from nfa import KeyMismatch, PatternRefused, parse_pattern, pattern_to_json
from service import Intake, Registration
from service.errors import PatternTooLong, StreamMissing, UnknownConstraints, UnknownPatternName, UnknownStream
from service.registering import on_stream
from service.registering.inspection import inspect_pattern
from service.registering.operators import OperatorLibrary
from service.registering.strangers import OF_STREAM
from service.stores import pattern_draft
from streams import StreamDeclaration
from tests.builders.registering import register_pattern
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis

PATTERN = "PATTERN p EVENT SEQ(A a, B b)"


@pytest.fixture
def registration(stores, settings, clock):
    registration = Registration(stores, settings, clock)
    registration.declare_stream(StreamDeclaration(name="orders", key="data.order.id", end_events=("Z",)))
    return registration


def controls(stores):
    return [entry.kind.value for entry in stores.log.read_range(0)]


def test_another_severity_is_no_next_version(registration, stores):
    assert register_pattern(registration, "orders", PATTERN).pattern.severity == "medium"
    before = controls(stores)
    graver = register_pattern(registration, "orders", PATTERN, severity="critical")
    assert (graver.is_new, graver.pattern.version, graver.pattern.severity) == (True, 1, "critical")
    assert controls(stores) == before
    assert not register_pattern(registration, "orders", PATTERN, severity="critical").is_new
    assert not register_pattern(registration, "orders", PATTERN).is_new
    longer = register_pattern(registration, "orders", "PATTERN p EVENT SEQ(A a, B b, C c)").pattern
    assert (longer.version, longer.severity) == (2, "critical")
    registration.delete_pattern("p")
    assert stores.registry.severities("pattern", ["other", "p"]) == {"p": "critical"}


def test_a_call_parses_the_constraint_set_once(registration, monkeypatch):
    registration.constraint_sets.upload("orders", {"constraints": ["prior(A, B)"]})
    parses = Mock(side_effect=parse_constraints)
    monkeypatch.setattr(on_stream, "parse_constraints", parses)
    calls = [
        lambda: register_pattern(registration, "orders", PATTERN),
        lambda: registration.pattern("p"),
        lambda: registration.move_pattern("p", "pause"),
        lambda: registration.constraint_sets.current("orders"),
    ]
    for number, call in enumerate(calls, 1):
        call()
        assert parses.call_count == number


def test_a_pattern_gets_its_name_from_its_text(registration, clock):
    report = register_pattern(registration, "orders", PATTERN)
    assert report.is_new
    assert (report.pattern.name, report.pattern.version, report.pattern.stream) == ("p", 1, "orders")
    assert report.pattern.registered_us == clock.now_us()


def test_the_same_text_is_the_same_version_without_a_control_record(registration, stores):
    register_pattern(registration, "orders", PATTERN)
    assert not register_pattern(registration, "orders", PATTERN).is_new
    assert register_pattern(registration, "orders", PATTERN + " -- again").pattern.version == 2
    assert controls(stores) == ["stream-on", "pattern-on", "pattern-on"]


def test_an_unparsable_pattern_is_refused_with_its_place(registration, stores):
    with pytest.raises(PatternRefused) as caught:
        register_pattern(registration, "orders", "PATTERN p EVENT SEQ(A a,\n  B b")
    assert caught.value.details["line"] == 2
    assert controls(stores) == ["stream-on"]


def test_a_long_pattern_is_refused(stores, server_url, clock):
    settings = settings_for(server_url, limits={"max_pattern_chars": 10})
    with pytest.raises(PatternTooLong, match="at most 10"):
        register_pattern(Registration(stores, settings, clock), "orders", PATTERN)


def test_a_pattern_needs_its_stream(registration):
    with pytest.raises(UnknownStream, match="'payments'"):
        register_pattern(registration, "payments", PATTERN)


@pytest.mark.parametrize("key", ["", " WHERE [key]", " WHERE [order.id]", " WHERE [data.order.id]"])
def test_the_streams_own_key_may_be_named(registration, key):
    assert register_pattern(registration, "orders", PATTERN + key).is_new


@pytest.mark.parametrize("key", ["customer", "order", "customer, order"])
def test_another_key_is_refused(registration, key):
    with pytest.raises(KeyMismatch, match=rf"write \[key, {key}\] for finer traces"):
        register_pattern(registration, "orders", f"{PATTERN} WHERE [{key}]")


@pytest.mark.parametrize("key", ["key, customer", "customer, order.id"])
def test_a_finer_key_is_taken_and_told_that_constraints_do_not_end_it(registration, key):
    registration.constraint_sets.upload("orders", ["exclusive(B, C)"])
    (warning,) = register_pattern(registration, "orders", f"{PATTERN} WHERE [{key}]").warnings
    assert "finer by customer" in warning
    assert registration.pattern("p")[1].conditions == ()


def test_the_json_form_is_stored_as_text(registration):
    definition = pattern_to_json(parse_pattern(f"{PATTERN} SELECT NEXT RETURN a.v AS v"))
    pattern = registration.read_pattern(None, definition)
    report = registration.register("orders", pattern, pattern_draft(name="", text=pattern.text))
    assert (report.pattern.text, pattern_to_json(report.parsed)) == (
        "PATTERN p\nEVENT SEQ(A a, B b)\nSELECT NEXT\nRETURN a.v AS v",
        definition,
    )
    assert not register_pattern(registration, "orders", report.pattern.text).is_new


def test_a_json_form_that_makes_a_long_text_is_refused(stores, server_url, clock, registration):
    settings = settings_for(server_url, limits={"max_pattern_chars": 10})
    with pytest.raises(PatternTooLong):
        Registration(stores, settings, clock).read_pattern(None, pattern_to_json(parse_pattern(PATTERN)))


@pytest.mark.parametrize("event", ["SEQ(A a, NOT B)", "SEQ(A a, B+ b GREEDY)"])
def test_a_pattern_that_waits_for_the_end_of_a_trace_needs_an_end_event(registration, event):
    registration.declare_stream(StreamDeclaration(name="endless"))
    registration.constraint_sets.upload("endless", {"end": ["Y"]})  # noticed: its traces stay open
    with pytest.raises(PatternRefused) as caught:
        register_pattern(registration, "endless", f"PATTERN p EVENT {event}", is_guarded=False)
    assert caught.value.reason == "needs-end"
    assert register_pattern(registration, "endless", f"PATTERN p EVENT {event} WITHIN 1 h").is_new
    assert register_pattern(registration, "orders", f"PATTERN q EVENT {event}").is_new


def test_constraints_that_close_a_trace_decide_what_must_not_follow(registration):
    registration.declare_stream(StreamDeclaration(name="endless"))
    registration.constraint_sets.upload("endless", {"end": ["Y"]})
    assert register_pattern(registration, "endless", "PATTERN p EVENT SEQ(A a, NOT B)").is_new
    with pytest.raises(PatternRefused) as caught:
        register_pattern(registration, "endless", "PATTERN q EVENT SEQ(A a, B+ b GREEDY)")
    assert caught.value.reason == "needs-end"


def test_what_is_probably_not_meant_is_warned_of(registration):
    registration.declare_stream(StreamDeclaration(name="endless"))
    (warning,) = register_pattern(registration, "endless", PATTERN).warnings
    assert warning.startswith("line 1, column 21: the stream has no end of trace")


def test_a_pattern_that_the_constraints_make_impossible_is_refused_with_the_reason(registration, stores):
    registration.constraint_sets.upload("orders", ["exclusive(A, B)"])
    with pytest.raises(UnsatisfiablePattern, match=r"exclusive\(A, B\)"):
        register_pattern(registration, "orders", PATTERN)
    assert stores.registry.patterns() == []


def test_a_document_may_name_its_stream(registration):
    report = registration.constraint_sets.upload(None, "stream: orders\nprior: [[A, B]]\n")
    assert (report.record.stream, "stream" in report.record.document) == ("orders", False)
    assert not registration.constraint_sets.upload("orders", {"stream": "orders", "prior": [["A", "B"]]}).is_new


@pytest.mark.parametrize(
    ("stream", "document"), [(None, ["prior(A, B)"]), ("orders", {"stream": "payments", "end": ["A"]})]
)
def test_a_document_is_for_one_stream(registration, stream, document):
    with pytest.raises(StreamMissing, match="name"):
        registration.constraint_sets.upload(stream, document)


def test_end_events_of_the_stream_count_without_constraints(registration):
    with pytest.raises(UnsatisfiablePattern, match="Z"):
        register_pattern(registration, "orders", "PATTERN p EVENT SEQ(Z z, A a)")


def test_an_impossible_alternative_is_warned_of(registration):
    registration.constraint_sets.upload("orders", ["exclusive(A, B)"])
    report = register_pattern(registration, "orders", "PATTERN p EVENT SEQ(A a, OR(B b, C c))")
    assert len(report.warnings) == 1
    assert "exclusive(A, B)" in report.warnings[0]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("SEQ(opened o, answerd a)", "column 31: answerd (did you mean answered?) is none of the event types that the"),
        ("SEQ(opened o, NOT answerd, closed c)", "so this forbids nothing"),
        ("SEQ(opened|opend o, answered a)", "opend (did you mean opened?)"),
        ("SEQ(opened o, answered+ a UNTIL clozed)", "clozed (did you mean closed?)"),
        ("SEQ(opened o, zzz z)", "zzz is none of the event types that the stream declares, so this can never match"),
    ],
)
def test_types_that_a_stream_does_not_declare_are_refused(registration, event, message):
    types = ("opened", "answered", "closed")
    registration.declare_stream(StreamDeclaration(name="tickets", event_types=types, end_events=("closed",)))
    with pytest.raises(PatternRefused) as caught:
        register_pattern(registration, "tickets", f"PATTERN p EVENT {event}")
    assert message in str(caught.value)
    assert caught.value.reason == "unknown-type"
    assert not register_pattern(registration, "tickets", "PATTERN p EVENT SEQ(opened o, _ a)").warnings


def test_an_end_event_like_a_known_type_is_warned_of(registration, stores, settings, clock):
    registration.change_stream("orders", {"end_events": ("Fnish", "Clsed", "Cancl", "Nothing", "Z")})
    assert not registration.type_warnings("orders")
    report = registration.constraint_sets.upload("orders", ["exclusive(Finish, Cancelled)"])
    neither_occurs = (
        "the end event Fnish is not among the types of the constraints and the workflow, which have Finish; one of the "
        "two names is probably misspelt"
    )
    assert neither_occurs in report.warnings
    stores.registry.event_types.put("orders", "Closed", {}, 0)
    event = {"id": "1", "type": "Cancel", "time": 1, "data": {"order": {"id": "a"}}}
    assert Intake(stores.log, stores.registry, settings.limits, clock).ingest("orders", [event]).accepted == 1
    assert registration.type_warnings("orders") == [
        *(
            f"the end event {name} is none of the event types {OF_STREAM}, so no transaction ends with it"
            for name in ("Cancl (did you mean Cancel?)", "Clsed (did you mean Closed?)")
        ),
        neither_occurs,
        f"the type Cancelled (did you mean Cancel?) of the constraints is none of the event types {OF_STREAM}",
    ]


def test_an_end_event_with_a_schema_is_not_warned_of_by_its_constraints(registration, stores):
    registration.change_stream("orders", {"end_events": ("Fnish",)})
    stores.registry.event_types.put("orders", "Fnish", {}, 0)
    (warning,) = registration.constraint_sets.upload("orders", ["exclusive(Finish, Cancelled)"]).warnings
    assert warning.startswith("the type Finish (did you mean Fnish?) of the constraints is none")


@pytest.mark.parametrize("document", [["exclusive(Open, Clsoe)"], {"end": ["Close"], "exclusive": [["Open", "Clsoe"]]}])
def test_a_misspelt_type_of_constraints_is_named_instead_of_the_type_that_occurs(
    registration, stores, settings, clock, document
):
    registration.change_stream("orders", {"end_events": ("Close",)})
    events = [
        {"id": name, "type": name, "time": 1, "data": {"order": {"id": "a"}}} for name in ("Open", "Close", "Other")
    ]
    assert Intake(stores.log, stores.registry, settings.limits, clock).ingest("orders", events).accepted == 3
    report = registration.constraint_sets.upload("orders", document)
    assert report.warnings == (
        f"the type Clsoe (did you mean Close?) of the constraints is none of the event types {OF_STREAM}",
    )
    assert registration.type_warnings("orders") == [*report.warnings]


def test_a_type_of_the_newest_events_is_not_warned_of_in_a_pattern(registration, stores, settings, clock):
    registration.constraint_sets.upload("orders", ["prior(Opened, UseRemoteStock)"])
    pattern = "PATTERN p EVENT SEQ(Opened o, UseLocalStock u)"
    (warning,) = register_pattern(registration, "orders", pattern).warnings
    assert "UseLocalStock (did you mean UseRemoteStock?)" in warning
    event = {"id": "1", "type": "UseLocalStock", "time": 1, "data": {"order": {"id": "a"}}}
    assert Intake(stores.log, stores.registry, settings.limits, clock).ingest("orders", [event]).accepted == 1
    assert not register_pattern(registration, "orders", pattern).warnings


def test_types_like_those_that_are_known_are_warned_of(registration, stores):
    registration.constraint_sets.upload("orders", ["exclusive(answered, cancelled)"])
    stores.registry.event_types.put("orders", "opened", {}, 0)
    warnings = register_pattern(registration, "orders", "PATTERN p EVENT SEQ(opend o, NOT answerd, other c)").warnings
    assert [warning for warning in warnings if "did you mean" in warning] == [
        (
            "line 1, column 21: opend (did you mean opened?) is none of the event types of the stream's constraints, "
            "workflow and schemas, so this can never match unless events of other types occur"
        ),
        (
            "line 1, column 34: answerd (did you mean answered?) is none of the event types of the stream's "
            "constraints, workflow and schemas, so this forbids nothing unless events of other types occur"
        ),
    ]
    assert not any("other is none" in warning for warning in warnings)


JOIN = {
    "name": "j",
    "inputs": [
        {"stream": "orders", "as": "o", "type": ["opend", "other"], "closed_by": {"type": "answerd"}, "window": "1 h"},
        {"stream": "strict", "as": "p", "type": ["Paid", "Payd"], "window": "1 h"},
    ],
    "return": {"id": "id(o)"},
}
AGGREGATE = {
    "name": "a",
    "of": "orders",
    "where": "type IN ('opend', 'answered')",
    "by": ["key"],
    "values": {"n": "count()", "m": "count_if(type = 'answerd')"},
    "window": "1 h",
}


def test_types_in_joins_and_aggregates_like_those_that_are_known_are_warned_of(registration, stores, clock):
    registration.constraint_sets.upload("orders", ["exclusive(answered, cancelled)"])
    stores.registry.event_types.put("orders", "opened", {}, 0)
    registration.declare_stream(StreamDeclaration(name="strict", event_types=("Paid",)))
    operators, found = OperatorLibrary(stores, clock), {}
    for kind, document in (("join", JOIN), ("aggregate", AGGREGATE)):
        record, _ = operators.put(kind, document)
        found[kind] = [notice for notice in operators.notices(record) if "none of" in notice]
    place = "is none of the event types of the stream's constraints, workflow and schemas"
    assert found == {
        "join": [
            f"the input 'o': opend (did you mean opened?) {place}",
            f"the input 'o': answerd (did you mean answered?) {place}",
            "the input 'p': Payd (did you mean Paid?) is none of the event types that the stream declares",
        ],
        "aggregate": [
            f"where: opend (did you mean opened?) {place}",
            f"values, m: answerd (did you mean answered?) {place}",
        ],
    }


def test_types_of_aggregates_that_the_newest_events_have_are_not_warned_of(registration, stores, settings, clock):
    registration.constraint_sets.upload("orders", ["exclusive(answered, opened)"])
    event = {"id": "1", "type": "answerd", "time": 1, "data": {"order": {"id": "a"}}}
    assert Intake(stores.log, stores.registry, settings.limits, clock).ingest("orders", [event]).accepted == 1
    operators = OperatorLibrary(stores, clock)
    record, _ = operators.put("aggregate", AGGREGATE)
    (notice,) = [notice for notice in operators.notices(record) if "none of" in notice]
    assert notice.startswith("where: opend (did you mean opened?)")


def test_failing_conditions_are_told_in_words(registration):
    registration.constraint_sets.upload("orders", ["exclusive(B, C)"])
    register_pattern(registration, "orders", PATTERN)
    report, found = registration.pattern("p")
    assert report.pattern.name == "p"
    (condition,) = [
        condition for condition in found.conditions if condition.event_type == "C" and len(condition.bound) == 1
    ]
    assert "A a" in condition.text
    assert "exclusive(B, C)" in condition.text


def test_a_deleted_pattern_is_gone(registration, stores):
    register_pattern(registration, "orders", PATTERN)
    registration.delete_pattern("p")
    with pytest.raises(UnknownPatternName):
        registration.pattern("p")
    assert controls(stores)[-1] == "pattern-off"


@pytest.mark.parametrize("document", ["- exclusive(A, B)", '["exclusive(A, B)"]', b'{"exclusive": [["A", "B"]]}'])
def test_json_and_yaml_say_the_same(registration, stores, document):
    report = registration.constraint_sets.upload("orders", document)
    assert report.record.document == {"constraints": [{"exclusive": ["A", "B"]}], "end": ["Z"]}
    assert not registration.constraint_sets.upload("orders", ["exclusive(B, A)"]).is_new
    assert controls(stores) == ["stream-on", "constraints-on"]


def test_a_pattern_that_new_constraints_make_impossible_stays_with_a_warning(registration):
    register_pattern(registration, "orders", PATTERN)
    report = registration.constraint_sets.upload("orders", ["exclusive(A, B)"])
    (warning,) = report.warnings
    assert "p stays registered" in warning
    assert "exclusive(A, B)" in warning
    report_on_pattern, _ = registration.pattern("p")
    assert report_on_pattern.pattern.is_active
    assert [warning.partition(":")[0] for warning in report_on_pattern.warnings] == ["the pattern can never match"]
    assert registration.constraint_sets.current("orders").warnings == report.warnings


def test_contradictory_constraints_are_refused(registration, stores):
    with pytest.raises(ContradictoryConstraints, match="existence"):
        registration.constraint_sets.upload("orders", ["existence(A)", "absence(A)"])
    assert controls(stores) == ["stream-on"]


def test_every_problem_of_a_document_is_told(registration):
    with pytest.raises(InvalidConstraints) as caught:
        registration.constraint_sets.upload("orders", "- exclusive(A)\n- prior(A, B)\n- sometimes(A)\n")
    assert [problem.line for problem in caught.value.problems] == [1, 3]


def test_the_number_of_constraints_is_limited(stores, server_url, clock, registration):
    settings = settings_for(server_url, limits={"max_constraints": 1})
    with pytest.raises(InvalidConstraints, match="more than 1"):
        Registration(stores, settings, clock).constraint_sets.upload("orders", ["prior(A, B)", "prior(B, C)"])


def test_mismatches_with_the_declaration_are_noticed(registration):
    registration.declare_stream(StreamDeclaration(name="few", event_types=("A", "B")))
    notices = registration.constraint_sets.upload("few", {"prior": [["A", "C"]], "end": ["B"]}).record.notices
    assert len(notices) == 2
    assert notices[0].startswith("B: end events")
    assert notices[1].startswith("C: not among")


def test_constraints_need_their_stream(registration):
    with pytest.raises(UnknownStream):
        registration.constraint_sets.upload("payments", [])
    with pytest.raises(UnknownConstraints):
        registration.constraint_sets.current("orders")


SHOP = StreamDeclaration(
    name="shop", key="data.order", keys={"customer": "data.customer_id", "place": "data.where.city"}, end_events=("Z",)
)


@pytest.fixture
def shop(stores, settings, clock):
    registration = Registration(stores, settings, clock)
    registration.declare_stream(SHOP)
    return registration


@pytest.mark.parametrize(
    ("keys", "route"),
    [
        ("", ""),
        (" WHERE [key]", ""),
        (" WHERE [order, customer_id]", ""),
        (" WHERE [region, order]", ""),
        (" WHERE [customer_id]", "customer"),
        (" WHERE [data.customer_id]", "customer"),
        (" WHERE [customer]", "customer"),
        (" WHERE [region, customer]", "customer"),
        (" WHERE [where.city]", "place"),
        (" WHERE [place, customer]", "place"),
    ],
)
def test_the_keys_of_a_pattern_decide_its_route(shop, keys, route):
    assert register_pattern(shop, "shop", f"PATTERN p EVENT SEQ(A a, B b){keys}").pattern.route == route


def test_a_key_that_is_not_declared_is_refused_with_what_may_be_named(shop):
    with pytest.raises(KeyMismatch, match=r"\[customer_id\] for those of customer, \[where\.city\] for those of place"):
        register_pattern(shop, "shop", "PATTERN p EVENT A a WHERE [region]")


def test_constraints_say_nothing_of_a_further_key(shop):
    shop.constraint_sets.upload("shop", {"exclusive": [["A", "B"]]})
    with pytest.raises(UnsatisfiablePattern):
        register_pattern(shop, "shop", "PATTERN p EVENT SEQ(A a, B b)")
    report = register_pattern(shop, "shop", "PATTERN p EVENT SEQ(A a, B b) WHERE [customer_id]")
    assert report.warnings[-1].startswith("it is matched by the further key customer (data.customer_id)")
    assert not any("can never match" in warning for warning in report.warnings)
    assert shop.constraint_sets.current("shop").warnings == ()
    report, found = shop.pattern("p")
    assert (found.conditions, report.pattern.route) == ((), "customer")


def test_traces_of_a_further_key_have_no_end(shop):
    text = "PATTERN p EVENT SEQ(A a, NOT B)"
    register_pattern(shop, "shop", text)
    with pytest.raises(
        PatternRefused, match=r"traces of the further key customer have no end, .*; add WITHIN"
    ) as caught:
        register_pattern(shop, "shop", f"{text} WHERE [customer]")
    assert caught.value.reason == "needs-end"
    warnings = register_pattern(shop, "shop", "PATTERN q EVENT SEQ(A a, B b) WHERE [customer]").warnings
    assert any("traces of the further key customer have no end and the pattern no clause" in one for one in warnings)


def test_the_name_of_a_further_key_is_an_attribute_elsewhere(shop):
    warnings = register_pattern(shop, "shop", "PATTERN p EVENT SEQ(A a, B b) WHERE [key, customer]").warnings
    assert any("the further key customer is written customer_id there" in warning for warning in warnings)


def test_a_pattern_is_paused_and_resumed(shop):
    register_pattern(shop, "shop", "PATTERN p EVENT SEQ(A a, B b) WHERE [customer]")
    paused = shop.move_pattern("p", "pause")
    assert (paused.pattern.is_paused, paused.is_new, paused.parsed.name) == (True, True, "p")
    assert shop.move_pattern("p", "resume").pattern.is_paused is False


def test_what_ends_a_pattern_is_found_once_for_each_state_of_its_stream(registration, monkeypatch):
    looked: list[object] = []

    def inspect(*arguments, **options):
        looked.append(arguments)
        return inspect_pattern(*arguments, **options)

    monkeypatch.setattr("service.registering.registration.inspect_pattern", inspect)
    register_pattern(registration, "orders", PATTERN)
    without = registration.pattern("p")[1]
    assert registration.pattern("p")[1] is without
    registration.constraint_sets.upload("orders", {"constraints": ["prior(B, C)"]})
    under = registration.pattern("p")[1]
    assert registration.pattern("p")[1] is under
    assert [condition.explanation.event_type for condition in under.conditions] != [
        condition.explanation.event_type for condition in without.conditions
    ]
    register_pattern(registration, "orders", PATTERN + " WITHIN 1 h")
    registration.pattern("p")
    assert len(looked) == 3


def test_what_a_registration_reads_does_not_grow_with_the_number_of_patterns(registration, client):
    def traffic():
        stats = client.info("stats")
        return stats["total_commands_processed"], stats["total_net_output_bytes"]

    def spent(number):
        before = traffic()
        register_pattern(registration, "orders", f"PATTERN p{number:02} EVENT SEQ(A a [x = {number:02}], B b)")
        return tuple(after - start for after, start in zip(traffic(), before, strict=True))

    commands, size_bytes = spent(0)
    later = [spent(number) for number in range(1, 40)]
    # The median, since the server also counts what connections of other tests may still send.
    assert median(some for some, _ in later) <= commands
    assert median(more_bytes for _, more_bytes in later) < size_bytes + 100
