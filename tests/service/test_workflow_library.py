"""Workflows and the streams that follow them, on a real Redis."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from constraints import ContradictoryConstraints, parse_constraints
from service import Registration
from service.errors import (
    ConstraintsTooLarge,
    InvalidWorkflowName,
    ModelTooLarge,
    NotFollowing,
    StreamMissing,
    UnknownStream,
    UnknownTrace,
    UnknownWorkflow,
    WorkflowFollowed,
    WorkflowInDocument,
)
from service.intake.posting import Intake
from service.registering.joining import Derived
from service.registering.strangers import OF_STREAM
from service.registering.workflow_library import Marks, ModelUpload, WorkflowLibrary
from service.runtime import open_stores
from streams import ConstraintsOn, StreamDeclaration, decode_control
from tests.builders.races import during_commit
from tests.builders.registering import register_pattern
from tests.builders.service import put_constraints, settings_for
from workflows import AutomatonTooLarge, ModelFormat, ModelRefused

pytestmark = pytest.mark.redis

ORDER = {"sequence": ["Receive", {"xor": [{"sequence": ["Check", "Ship"]}, "Reject"]}, "Close"]}
LONGER = {"sequence": ["Receive", {"xor": [{"sequence": ["Check", "Pay", "Ship"]}, "Reject"]}, "Close"]}
WIDE = {"and": ["A", "B", "C", "D"]}


def upload_of(tree=None, name="order", **options):
    content = orjson.dumps({"name": "Orders", "tree": ORDER if tree is None else tree})
    options = {"format": ModelFormat.TREE, **options}
    return ModelUpload(name=name, content=content, media_type="application/json", **options)


@pytest.fixture
def registration(stores, settings, clock):
    registration = Registration(stores, settings, clock)
    registration.declare_stream(StreamDeclaration(name="orders", key="key", end_events=("Close",)))
    return registration


@pytest.fixture
def library(stores, settings, clock, registration):
    return WorkflowLibrary(stores, settings, clock, registration.constraint_sets)


def small_library(stores, server_url, clock, **limits):
    settings = settings_for(server_url, limits=limits)
    return WorkflowLibrary(stores, settings, clock, Registration(stores, settings, clock).constraint_sets)


def controls(stores):
    records = [decode_control(entry.kind, entry.body) for entry in stores.log.read_range(0)]
    return [record for record in records if isinstance(record, ConstraintsOn)]


def current(registration):
    return registration.constraint_sets.current("orders")


def test_a_model_is_compiled_and_kept(library, clock):
    report = library.upload(upload_of())
    record = report.record
    assert (report.is_new, record.version, report.followers) == (True, 1, ())
    assert record.registered_us == clock.now_us()
    said = record.summary
    assert (said.title, said.format, said.method, said.end) == ("Orders", "tree", "compositional", ("Close",))
    assert said.events == ("Check", "Close", "Receive", "Reject", "Ship")
    assert (said.states, said.without_automaton) == (5, "")
    assert said.counts["exclusive"] == 2
    assert library.workflow("order").record == record
    assert [one.record for one in library.workflows()] == [record]
    assert library.source("order") == (record, upload_of().content)


def test_the_same_model_again_is_the_same_version_and_another_the_next(library, stores):
    library.upload(upload_of())
    assert not library.upload(upload_of()).is_new
    assert library.upload(upload_of(LONGER)).record.version == 2
    assert [record.version for record in stores.workflows.versions("order")] == [1, 2]


def test_what_was_found_comes_back_as_it_was(library):
    library.upload(upload_of())
    derived = library.derived("order")
    again = Derived.from_findings(orjson.loads(orjson.dumps(derived.to_findings())), "order", 1)
    assert again == derived
    assert again.extraction.origins == derived.extraction.origins
    assert derived.automaton is not None
    assert derived.automaton.accepts(["Receive", "Reject", "Close"])
    assert set(derived.cover) <= set(derived.extraction.constraints)


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 101, "a/b"])
def test_names_are_like_those_of_streams(library, name):
    with pytest.raises(InvalidWorkflowName, match="letters, digits"):
        library.upload(upload_of(name=name))


def test_a_large_model_is_refused(stores, server_url, clock):
    with pytest.raises(ModelTooLarge, match="at most 10"):
        small_library(stores, server_url, clock, max_model_bytes=10).upload(upload_of())


def test_a_model_of_many_event_types_is_refused_by_name_of_the_setting(stores, server_url, clock):
    library = small_library(stores, server_url, clock, max_event_types=3)
    with pytest.raises(ModelTooLarge, match=r"more than 3 event types.*FORESTALL_LIMITS__MAX_EVENT_TYPES"):
        library.upload(upload_of())
    library = small_library(stores, server_url, clock, max_model_elements=3)
    with pytest.raises(ModelTooLarge, match=r"more than 3 elements.*FORESTALL_LIMITS__MAX_MODEL_ELEMENTS"):
        library.upload(upload_of())
    assert stores.workflows.all() == []


def test_a_constraint_set_of_many_event_types_is_refused(registration, stores):
    chain = {"stream": "orders", "prior": [[f"T{number}", f"T{number + 1}"] for number in range(9_999)]}
    with pytest.raises(
        ConstraintsTooLarge, match=r"name 10001 event types; at most 300 .*FORESTALL_LIMITS__MAX_EVENT_TYPES"
    ):
        registration.constraint_sets.upload(None, chain)
    assert not stores.registry.constraints.all()


def test_a_model_that_cannot_be_read_changes_nothing(library, stores):
    with pytest.raises(ModelRefused):
        library.upload(upload_of({"sequenze": ["A"]}))
    assert stores.workflows.all() == []


def test_what_is_unknown_is_named(library):
    for call in (library.workflow, library.source, library.derived, library.picture, library.delete):
        with pytest.raises(UnknownWorkflow, match="'order'"):
            call("order")
    with pytest.raises(UnknownWorkflow, match="'order'"):
        library.follow("orders", "order")
    with pytest.raises(UnknownStream, match="'nowhere'"):
        library.upload(upload_of(stream="nowhere"))
    assert library.workflows() == []


def test_an_upload_may_name_the_stream_that_follows(library, registration, stores):
    (follower,) = library.upload(upload_of(stream="orders")).followers
    assert (follower.stream, follower.version, follower.mode, follower.is_exact) == ("orders", 1, "auto", True)
    assert follower.notices == ()
    (record,) = controls(stores)
    effective = parse_constraints(record.document).constraint_set
    assert effective.process is not None
    assert (effective.process.workflow, effective.process.version) == ("order", 1)
    assert effective.process.automaton == library.derived("order").automaton
    assert set(effective.constraints) == set(library.derived("order").extraction.constraints)
    assert current(registration).constraint_set == effective


def test_in_tables_mode_there_is_no_automaton_in_the_log(library, stores):
    library.upload(upload_of())
    report = library.follow("orders", "order", "tables")
    assert report.constraint_set.process is not None
    assert report.constraint_set.process.automaton is None
    assert len(report.constraint_set.constraints) > 10
    assert "automaton" not in controls(stores)[-1].document["workflow"]
    (follower,) = library.workflow("order").followers
    assert (follower.mode, follower.is_exact) == ("tables", False)


def test_beyond_the_cap_streams_follow_the_constraints_and_exact_is_refused(stores, server_url, clock, registration):
    library = small_library(stores, server_url, clock, max_automaton_states=5)
    record = library.upload(upload_of(WIDE)).record
    assert record.summary.states is None
    assert "5" in record.summary.without_automaton
    with pytest.raises(AutomatonTooLarge, match="mode tables"):
        library.follow("orders", "order", "exact")
    assert not library.follow("orders", "order").constraint_set.is_exact
    with pytest.raises(AutomatonTooLarge):
        library.upload(upload_of(WIDE, name="other", mode="exact"))
    with pytest.raises(UnknownWorkflow):
        library.workflow("other")


def test_a_new_version_is_followed_at_once_and_open_traces_keep_theirs(library, registration, stores):
    library.upload(upload_of(stream="orders"))
    (follower,) = library.upload(upload_of(LONGER)).followers
    assert (follower.version, follower.constraints_version) == (2, 2)
    assert [record.version for record in controls(stores)] == [1, 2]
    assert "Pay" in current(registration).constraint_set.types
    assert [record.following.version for record in registration.constraint_sets.versions("orders")] == [1, 2]


def test_an_upload_reads_no_events_of_the_streams_that_it_switches(library, registration, stores, monkeypatch):
    library.upload(upload_of(stream="orders"))
    monkeypatch.setattr(stores, "event_pages", lambda *_: pytest.fail("events were read"))
    assert library.upload(upload_of(LONGER)).is_new
    assert registration.constraint_sets.versions("orders")[-1].following.version == 2


def test_the_same_upload_again_puts_right_what_an_interrupted_one_left(library, registration, stores, monkeypatch):
    library.upload(upload_of(stream="orders"))
    with monkeypatch.context() as patch:
        patch.setattr(registration.constraint_sets, "switch", lambda *_: replace_none())
        with pytest.raises(InterruptedError):
            library.upload(upload_of(LONGER))
    assert library.workflow("order").followers[0].version == 1
    assert library.upload(upload_of(LONGER)).followers[0].version == 2


def replace_none():
    raise InterruptedError


def interrupting(monkeypatch, target, name, other):
    """Let another caller run ``other`` once, right after the first call of a method."""
    inner = getattr(target, name)
    calls: list[None] = []

    def interrupted(*arguments):
        result = inner(*arguments)
        if not calls:
            calls.append(None)
            other()
        return result

    monkeypatch.setattr(target, name, interrupted)


@pytest.fixture
def other_library(settings, clock, server_url):
    with open_stores(settings) as stores:
        registration = Registration(stores, settings, clock)
        yield WorkflowLibrary(stores, settings, clock, registration.constraint_sets)


@pytest.mark.parametrize("stream", [None, "shop"])
def test_of_two_uploads_at_once_followers_end_at_the_later(library, other_library, registration, monkeypatch, stream):
    registration.declare_stream(StreamDeclaration(name="shop", key="key"))
    library.upload(upload_of(stream="orders"))
    with monkeypatch.context() as patch:
        interrupting(patch, library._stores.workflows, "put", lambda: other_library.upload(upload_of(WIDE)))
        assert library.upload(upload_of(LONGER, stream=stream)).record.version == 2
    report = library.workflow("order")
    assert report.record.version == 3
    assert {follower.stream: follower.version for follower in report.followers} == {
        "orders": 3,
        **({} if stream is None else {stream: 3}),
    }


def test_a_stream_that_begins_to_follow_during_an_upload_ends_at_the_new_version(library, other_library, monkeypatch):
    library.upload(upload_of())
    interrupting(monkeypatch, library, "derived", lambda: other_library.upload(upload_of(LONGER)))
    report = library.follow("orders", "order", "tables")
    assert report.is_new
    assert (report.record.following.version, report.record.following.mode) == (2, "tables")


def test_an_upload_switches_a_stream_that_begins_to_follow_while_it_is_stored(library, other_library, monkeypatch):
    library.upload(upload_of())
    interrupting(monkeypatch, library, "_check_followers", lambda: other_library.follow("orders", "order"))
    (follower,) = library.upload(upload_of(LONGER)).followers
    assert (follower.stream, follower.version) == ("orders", 2)


def test_a_stream_that_stops_following_during_an_upload_does_not_follow_again(
    library, other_library, registration, monkeypatch
):
    library.upload(upload_of(stream="orders"))
    unfollow = other_library._constraint_sets.unfollow
    interrupting(monkeypatch, library, "_followers", lambda: unfollow("orders"))
    library.upload(upload_of(LONGER))
    assert library.workflow("order").followers == ()


def test_what_is_written_by_hand_stays_beside_the_workflow(library, registration):
    registration.constraint_sets.upload("orders", {"exclusive": [["Check", "Note"]], "settings": {"prune": "shadow"}})
    own = registration.constraint_sets.current("orders").record.document
    joined = library.upload(upload_of(stream="orders", mode="tables")).followers[0]
    record = current(registration).record
    assert joined.constraints_version == record.version == 2
    assert "exclusive(Check, Note)" in map(str, parse_constraints(record.written).constraint_set.constraints)
    effective = current(registration).constraint_set
    assert str(effective.constraints[0]) == "exclusive(Check, Note)"
    assert effective.settings.prune == "shadow"
    registration.constraint_sets.upload("orders", ["exclusive(Ship, Note)"])
    after = current(registration)
    assert after.record.following == record.following
    assert "exclusive(Note, Ship)" in map(str, after.constraint_set.constraints)
    assert "exclusive(Check, Note)" not in map(str, after.constraint_set.constraints)
    registration.constraint_sets.upload("orders", own)
    assert registration.constraint_sets.unfollow("orders").record.following is None
    assert current(registration).record.document == own


def test_the_same_following_again_changes_nothing(library, stores):
    library.upload(upload_of(stream="orders"))
    assert not library.follow("orders", "order").is_new
    assert library.follow("orders", "order", "exact").is_new
    assert not library.upload(upload_of()).is_new
    assert len(controls(stores)) == 2


def test_a_stream_that_follows_nothing_says_so(library, registration):
    unfollow = registration.constraint_sets.unfollow
    for call in (unfollow, library.following):
        with pytest.raises(NotFollowing, match="'orders'"):
            call("orders")
        with pytest.raises(UnknownStream):
            call("nowhere")
    registration.constraint_sets.upload("orders", ["exclusive(A, B)"])
    with pytest.raises(NotFollowing):
        unfollow("orders")


def test_a_hand_written_set_cannot_bring_a_workflow(library, registration, stores):
    library.upload(upload_of(stream="orders"))
    with pytest.raises(WorkflowInDocument, match="PUT /v1/workflows"):
        registration.constraint_sets.upload("orders", controls(stores)[-1].document)


def test_nobody_can_follow_what_contradicts_the_rules_written_by_hand(library, registration, stores):
    registration.constraint_sets.upload("orders", ["absence(Receive)"])
    library.upload(upload_of())
    with pytest.raises(ContradictoryConstraints):
        library.follow("orders", "order")
    with pytest.raises(ContradictoryConstraints):
        library.upload(upload_of(LONGER, stream="orders"))
    assert library.workflow("order").record.version == 1
    assert len(controls(stores)) == 1


def test_ends_and_types_that_do_not_go_together_are_noticed(library, registration):
    registration.declare_stream(
        StreamDeclaration(
            name="odd", end_events=("Reject", "Timeout"), event_types=("Receive", "Reject", "Close", "Timeout")
        )
    )
    notices = library.upload(upload_of(stream="odd", mode="tables")).followers[0].notices
    assert any(notice.startswith("Close: end events of the workflow 'order'") for notice in notices)
    assert any(notice.startswith("Reject: end events of the stream after which") for notice in notices)
    assert any(notice.startswith("Check, Ship: of the workflow 'order'") for notice in notices)


def test_types_of_the_workflow_are_known_where_others_deviate(library, registration):
    registration.constraint_sets.upload("orders", {"constraints": [], "settings": {"unknown_types": "deviate"}})
    report = library.upload(upload_of(stream="orders"))
    assert report.followers[0].is_exact
    assert {"Check", "Ship", "Reject"} <= current(registration).constraint_set.settings.types


def test_a_workflow_that_is_followed_stays(library, registration):
    library.upload(upload_of(stream="orders"))
    with pytest.raises(WorkflowFollowed, match="orders") as refusal:
        library.delete("order")
    assert refusal.value.details["streams"] == ["orders"]
    registration.constraint_sets.unfollow("orders")
    library.delete("order")
    assert library.workflows() == []


def test_versions_are_compared(library):
    library.upload(upload_of())
    library.upload(upload_of(LONGER))
    library.upload(upload_of({"sequence": [LONGER]}))
    found = library.difference("order", 1, 2)
    assert found.has_same_language is False
    assert "prior(Pay, Ship)" in map(str, found.added)
    assert found.removed == ()
    back = library.difference("order", 2, 1)
    assert (back.added, back.removed) == ((), found.added)
    assert library.difference("order", 2, 3).has_same_language is True
    with pytest.raises(UnknownWorkflow, match="no version 4"):
        library.difference("order", 1, 4)


def test_traces_are_checked(library):
    library.upload(upload_of())
    record, (whole, begun, gone) = library.conformance(
        "order", [["Receive", "Reject", "Close"], ["Receive"], ["Receive", "Ship"]]
    )
    assert record.version == 1
    assert (whole.is_complete, begun.conforms, begun.is_complete) == (True, True, False)
    assert (gone.at, gone.event, gone.allowed) == (1, "Ship", ("Check", "Reject"))


def test_a_picture_may_show_what_a_transaction_did(library, registration, stores, settings, clock):
    library.upload(upload_of())
    assert library.picture("order", marks=Marks(highlighted=["Check"])).startswith("<svg")
    with pytest.raises(StreamMissing, match="no stream follows"):
        library.marks_of_trace("order", "k")
    library.follow("orders", "order")
    events = [{"id": f"e{n}", "type": name, "time": n, "key": "k"} for n, name in [(5, "Check"), (1, "Receive")]]
    others = [{**events[0], "id": "e6", "key": "other"}, {**events[0], "id": "e9", "type": "Note"}]
    intake = Intake(stores.log, stores.registry, settings.limits, clock)
    assert intake.ingest("orders", [*events, *others]).accepted == 4
    with pytest.raises(UnknownTrace, match="'nobody'"):
        library.marks_of_trace("order", "nobody")
    with pytest.raises(UnknownStream):
        library.marks_of_trace("order", "k", stream="nowhere")
    marks = library.marks_of_trace("order", "k")
    assert marks.highlighted == {"Receive": 1, "Check": 1, "Note": 1}
    assert marks.expected == ("Ship",)
    assert marks == library.marks_of_trace("order", "k", stream="orders", version=1)
    assert "Receive" in library.picture("order", marks=marks)


def test_events_that_another_key_of_the_stream_repeats_are_not_in_the_picture(
    library, registration, stores, settings, clock
):
    library.upload(upload_of())
    shop = StreamDeclaration(name="shop", key="data.order", keys={"customer": "data.customer"}, end_events=("Close",))
    registration.declare_stream(shop)
    library.follow("shop", "order")
    register_pattern(registration, "shop", "PATTERN p EVENT SEQ(Receive a, Check b) WHERE [customer] WITHIN 4 s")
    events = [("1", "Receive", "k", "k"), ("2", "Check", "other", "k")]
    posted = [
        {"id": name, "type": event_type, "time": int(name), "data": {"order": order, "customer": customer}}
        for name, event_type, order, customer in events
    ]
    assert Intake(stores.log, stores.registry, settings.limits, clock).ingest("shop", posted).accepted == 2
    routes = {entry.route for home in range(3) for entry in stores.log.read_range(home) if entry.stream == "shop"}
    assert "customer" in routes
    assert library.marks_of_trace("order", "k", stream="shop").highlighted == {"Receive": 1}


def test_records_of_streams_from_before_workflows_are_wholly_written_by_hand(library, registration, stores, clock):
    registration.constraint_sets.upload("orders", ["exclusive(Check, Note)"])
    record = stores.registry.constraints.get("orders")
    old = replace(record, own=None)
    assert old.written == record.document
    put_constraints(stores.registry, "payments", record.document, (), clock.now_us())
    assert stores.registry.constraints.get("payments").own is None


def test_types_that_a_followed_workflow_does_not_have_are_warned_of(library, registration):
    library.upload(upload_of(stream="orders"))
    report = register_pattern(registration, "orders", "PATTERN p EVENT SEQ(Receive r, NOT Chek, Unheard u, Close c)")
    assert [warning for warning in report.warnings if "workflow" in warning] == [
        (
            "line 1, column 36: Chek (did you mean Check?) is none of the event types of the stream's workflow, so "
            "this forbids nothing unless events of other types occur"
        ),
        (
            "line 1, column 42: Unheard is none of the event types of the stream's workflow, so this can never match "
            "unless events of other types occur"
        ),
    ]


def test_patterns_on_types_that_the_next_version_of_a_workflow_lacks_are_warned_of(
    library, registration, stores, settings, clock
):
    library.upload(upload_of(LONGER, stream="orders"))
    register_pattern(registration, "orders", "PATTERN paid EVENT SEQ(Check c, Pay p, Ship s)", is_guarded=False)
    register_pattern(registration, "orders", "PATTERN unheard EVENT SEQ(Receive r, Unheard u)")
    event = {"id": "1", "type": "Pay", "time": 1, "key": "a", "data": {}}
    assert Intake(stores.log, stores.registry, settings.limits, clock).ingest("orders", [event]).accepted == 1
    assert not current(registration).warnings
    library.upload(upload_of(ORDER))
    (warning,) = current(registration).warnings
    assert warning == (
        "the pattern paid stays registered; line 1, column 33: Pay is none of the event types of the current version "
        "of the stream's workflow, so this can never match unless events of other types occur"
    )


def test_no_stream_follows_a_workflow_that_is_deleted_meanwhile(library, registration, stores, monkeypatch):
    library.upload(upload_of())
    during_commit(monkeypatch, lambda: library.delete("order"))
    with pytest.raises(UnknownWorkflow):
        library.follow("orders", "order")
    assert stores.registry.constraints.find("orders") is None


def test_no_workflow_is_deleted_that_a_stream_begins_to_follow_meanwhile(
    library, registration, client, stores, monkeypatch
):
    library.upload(upload_of())
    during_commit(monkeypatch, lambda: library.follow("orders", "order"))
    with pytest.raises(WorkflowFollowed, match="orders"):
        library.delete("order")
    assert stores.workflows.get("order").is_active
    registration.constraint_sets.unfollow("orders")
    library.delete("order")
    registration.remove_stream("orders", is_cascading=True)
    assert client.hkeys("forestall:uses") == [b"removed streams"]


def test_a_constraint_set_has_the_end_events_that_were_changed_meanwhile(registration, monkeypatch):
    during_commit(monkeypatch, lambda: registration.change_stream("orders", {"end_events": ("Done",)}))
    report = registration.constraint_sets.upload("orders", "constraints: [existence(A)]")
    assert report.constraint_set.end_events == {"Done"}
    assert parse_constraints(report.record.document).constraint_set.end_events == {"Done"}


def test_no_version_is_stored_that_a_stream_which_begins_to_follow_meanwhile_cannot_follow(
    stores, server_url, clock, registration, monkeypatch
):
    library = small_library(stores, server_url, clock, max_automaton_states=5)
    library.upload(upload_of())
    during_commit(monkeypatch, lambda: library.follow("orders", "order", "exact"))
    with pytest.raises(AutomatonTooLarge):
        library.upload(upload_of(WIDE))
    assert library.workflow("order").record.version == 1
    assert current(registration).record.following.version == 1


def test_a_type_of_a_model_like_an_end_event_that_occurs_is_warned_of(library, registration, stores, settings, clock):
    events: list[dict[str, Any]] = [
        {"id": name, "type": name, "time": 1, "key": "a", "data": {}} for name in ("Receive", "Close")
    ]
    assert Intake(stores.log, stores.registry, settings.limits, clock).ingest("orders", events).accepted == 2
    library.upload(upload_of({"sequence": ["Receive", "Check", "Closed"]}, stream="orders"))
    assert registration.constraint_sets.current("orders").warnings == (
        f"the type Closed (did you mean Close?) of the workflow is none of the event types {OF_STREAM}",
    )
