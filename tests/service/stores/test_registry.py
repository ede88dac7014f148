from hashlib import blake2b

import orjson
import pytest

from service.errors import (
    MigrationRefused,
    PatternOnOtherStream,
    RecordFormatError,
    RegistryContended,
    StreamExists,
    UnknownConstraints,
    UnknownPatternName,
    UnknownStream,
)
from service.stores import OperatorDraft, Registry, pattern_draft, tag_of
from service.stores.connection import PREFIX
from service.stores.record_books import RecordBook
from service.stores.registry.removal import CONSTRAINT_VERSIONS_KEY
from streams import ROUTES_KEY, STREAMS_KEY, FieldMapping, PatternOn, StreamDeclaration, decode_control
from tests.builders.service import put_constraints

pytestmark = pytest.mark.redis

TEXT = "PATTERN p EVENT A a"
ORDERS = StreamDeclaration(
    name="orders", key="data.id", event_types=("A", "Z"), end_events=("Z",), mapping=FieldMapping(data=None)
)


@pytest.fixture
def registry(stores):
    return stores.registry


def draft(text=TEXT, name="p", **more):
    return pattern_draft(name=name, text=text, **more)


def controls(stores):
    return [entry.kind.value for entry in stores.log.read_range(0)]


def test_a_stream_is_kept_as_declared(registry):
    assert registry.declare_stream(ORDERS)
    assert registry.stream("orders") == ORDERS
    assert registry.streams() == [ORDERS]


def test_the_same_declaration_again_changes_nothing(registry, stores):
    registry.declare_stream(ORDERS)
    assert not registry.declare_stream(ORDERS)
    assert controls(stores) == ["stream-on"]


def test_another_declaration_is_refused(registry):
    registry.declare_stream(ORDERS)
    other = StreamDeclaration(name="orders", key="data.other", idle_timeout=60, end_events=ORDERS.end_events)
    with pytest.raises(StreamExists) as refused:
        registry.declare_stream(other, is_checked=True)
    assert f"another declaration (key: '{ORDERS.key}', here 'data.other'" in refused.value.message
    assert "idle_timeout: not set, here 60; schemas: off)" in refused.value.message
    assert "end_events" not in refused.value.message
    assert registry.stream("orders") == ORDERS


def test_an_unknown_stream_is_named(registry):
    with pytest.raises(UnknownStream, match="'orders'"):
        registry.stream("orders")


def test_another_text_is_the_next_version_and_the_same_is_none(registry, stores):
    first, is_first_new = registry.put_pattern("orders", draft(TEXT), 1)
    same, is_same_new = registry.put_pattern("orders", draft(TEXT), 2)
    other, is_other_new = registry.put_pattern("orders", draft(TEXT + " [x > 1]"), 3)
    assert (first.version, is_first_new) == (1, True)
    assert (same, is_same_new) == (first, False)
    assert (other.version, other.registered_us, is_other_new) == (2, 3, True)
    assert controls(stores) == ["pattern-on", "pattern-on"]


def test_whether_constraints_count_is_a_matter_of_the_version(registry, stores):
    registry.put_pattern("orders", draft(TEXT), 1)
    off, is_off_new = registry.put_pattern("orders", draft(TEXT, is_guarded=False), 2)
    assert (off.version, off.is_guarded, is_off_new) == (2, False, True)
    assert registry.put_pattern("orders", draft(TEXT, is_guarded=False), 3) == (off, False)
    assert registry.pattern("p") == off
    controls = [decode_control(entry.kind, entry.body) for entry in stores.log.read_range(0)]
    assert [control.is_guarded for control in controls if isinstance(control, PatternOn)] == [True, False]


def test_versions_go_on_after_a_pattern_was_deleted(registry, stores):
    registry.put_pattern("orders", draft(TEXT), 1)
    registry.pattern_operators.remove("p")
    assert registry.patterns() == []
    with pytest.raises(UnknownPatternName, match="'p'"):
        registry.pattern("p")
    again, is_new = registry.put_pattern("payments", draft(TEXT), 2)
    assert (again.version, again.stream, is_new) == (2, "payments", True)
    assert controls(stores) == ["pattern-on", "pattern-off", "pattern-on"]


def test_only_what_is_there_can_be_deleted(registry, stores):
    with pytest.raises(UnknownPatternName):
        registry.pattern_operators.remove("p")
    assert controls(stores) == []


def test_a_name_belongs_to_one_stream(registry):
    registry.put_pattern("orders", draft(TEXT), 1)
    with pytest.raises(PatternOnOtherStream, match="'orders'"):
        registry.put_pattern("payments", draft(TEXT), 2)


def test_patterns_are_listed_by_name_and_by_stream(registry):
    for stream, name in [("orders", "b"), ("payments", "c"), ("orders", "a")]:
        registry.put_pattern(stream, draft(TEXT, name=name), 1)
    assert [pattern.name for pattern in registry.patterns()] == ["a", "b", "c"]
    assert [pattern.name for pattern in registry.patterns("orders")] == ["a", "b"]


def test_another_document_is_the_next_version_and_the_same_is_none(registry, client):
    put_constraints(registry, "orders", {"constraints": []}, (), 1)
    record, is_new = put_constraints(registry, "orders", {"end": ["Z"]}, ("a notice",), 2)
    assert is_new
    assert registry.constraints.get("orders") == record
    assert record.version == 2
    assert put_constraints(registry, "orders", {"end": ["Z"]}, (), 3) == (record, False)
    assert registry.constraints.all() == [record]
    assert sorted(client.hkeys(CONSTRAINT_VERSIONS_KEY)) == [b"1@orders", b"2@orders"]


def test_every_version_of_a_constraint_set_is_kept(registry):
    documents = [{"end": [name]} for name in "XYZ"]
    for number, document in enumerate(documents):
        put_constraints(registry, "orders", document, (), number)
        put_constraints(registry, "payments", {"end": ["P"]}, (), 9)
    versions = registry.constraints.versions("orders")
    assert [(record.version, record.document, record.uploaded_us) for record in versions] == [
        (number + 1, document, number) for number, document in enumerate(documents)
    ]
    assert versions[-1] == registry.constraints.get("orders")


def test_a_missing_constraint_set_is_named(registry):
    with pytest.raises(UnknownConstraints, match="'orders'"):
        registry.constraints.versions("orders")
    with pytest.raises(UnknownConstraints, match="'orders'"):
        registry.constraints.get("orders")


@pytest.mark.parametrize("body", [b'{"format": 2}', b"{}", b"[]", b"not json", b'{"format": 1}'])
def test_records_of_unknown_form_are_refused(registry, client, body):
    client.hset(STREAMS_KEY, "orders", body)
    with pytest.raises(RecordFormatError, match="orders"):
        registry.stream("orders")


def test_a_change_from_a_stale_record_is_computed_again(registry, client, stores):
    """Another writer comes between reading and writing."""

    class Interrupted(RecordBook):
        rounds = 0

        def get(self, key, field):
            current = super().get(key, field)
            if self.rounds == 0:
                self.rounds += 1
                registry.put_pattern("orders", draft(TEXT), 1)
            return current

    late = Registry(client, stores.log)
    late.pattern_operators._book = Interrupted(client, stores.log.layout.append)
    pattern, is_new = late.put_pattern("orders", draft(TEXT + " [x > 1]"), 2)
    assert (pattern.version, is_new) == (2, True)
    assert controls(stores) == ["pattern-on", "pattern-on"]


@pytest.fixture
def lossy(registry):
    """A registry whose commits all run twice, as when the reply of the first is lost."""
    commit = registry._book._commit
    registry._book._commit = lambda **given: (commit(**given), commit(**given))[1]
    return registry


def test_changes_whose_reply_was_lost_are_told_as_done(lossy, stores):
    assert lossy.declare_stream(ORDERS)
    pattern, is_new = lossy.put_pattern("orders", draft(TEXT), 1)
    assert (pattern.version, is_new) == (1, True)
    pattern, is_new = lossy.put_pattern("orders", draft(TEXT + " [x > 1]"), 2)
    assert (pattern.version, is_new) == (2, True)
    lossy.pattern_operators.remove("p")
    assert lossy.patterns() == []
    constraints, is_new = put_constraints(lossy, "orders", {"end": ["Z"]}, (), 1)
    assert (constraints.version, is_new) == (1, True)
    assert controls(stores) == ["stream-on", "pattern-on", "pattern-on", "pattern-off", "constraints-on"]


def test_a_lost_reply_and_a_later_writer_do_not_bring_the_change_twice(registry, client, stores):
    other = Registry(client, stores.log)
    commit = registry._book._commit

    def lost(**given):
        commit(**given)
        other.put_pattern("orders", draft(TEXT + " [x > 2]"), 2)
        return commit(**given)

    registry._book._commit = lost
    pattern, is_new = registry.put_pattern("orders", draft(TEXT), 1)
    assert (pattern.version, is_new) == (1, True)
    assert registry.pattern("p").version == 2
    assert controls(stores) == ["pattern-on", "pattern-on"]


def test_endless_contention_is_told(registry, client, stores):
    class Stale(RecordBook):
        def get(self, key, field):
            return None

    registry.put_pattern("orders", draft(TEXT), 1)
    stale = Registry(client, stores.log)
    stale.pattern_operators._book = Stale(client, stores.log.layout.append)
    with pytest.raises(RegistryContended) as caught:
        stale.put_pattern("orders", draft(TEXT), 2)
    assert caught.value.is_retryable
    assert controls(stores) == ["pattern-on"]


def test_the_golden_record_of_version_1_is_read(registry, client):
    golden = {"format": 1, "name": "p", "stream": "s", "text": "t", "version": 4, "is_active": True, "registered_us": 9}
    client.hset(PREFIX + "patterns", "p", orjson.dumps(golden))
    assert (registry.pattern("p").version, registry.pattern("p").is_guarded) == (4, True)


def test_a_pattern_is_paused_and_resumed_as_the_same_version(registry, stores):
    first, _ = registry.put_pattern("orders", draft(), 1)
    paused, is_new = registry.pattern_operators.move("p", "pause")
    assert (paused.is_paused, paused.version, is_new) == (True, 1, True)
    assert registry.pattern_operators.move("p", "pause") == (paused, False)
    assert registry.patterns() == [paused]
    assert registry.put_pattern("orders", draft(), 2) == (paused, False)
    assert registry.pattern_operators.move("p", "resume") == (first, True)
    assert registry.pattern_operators.move("p", "resume") == (first, False)
    assert controls(stores) == ["pattern-on", "pattern-pause", "pattern-on"]
    last = list(stores.log.read_range(0))[-1]
    assert decode_control(last.kind, last.body) == PatternOn(name="p", version=1, text=TEXT)
    with pytest.raises(UnknownPatternName):
        registry.pattern_operators.move("q", "pause")


def test_the_next_version_of_a_paused_pattern_is_active(registry):
    registry.put_pattern("orders", draft(), 1)
    registry.pattern_operators.move("p", "pause")
    second, is_new = registry.put_pattern("orders", draft(TEXT + " [x > 1]", start="migrate"), 2)
    assert (second.version, second.is_paused, is_new) == (2, False, True)


def starts(stores):
    found = [decode_control(entry.kind, entry.body) for entry in stores.log.read_range(0)]
    return [record.start for record in found if isinstance(record, PatternOn)]


def test_a_version_migrates_where_one_runs(registry, stores):
    registry.put_pattern("orders", draft(start="migrate"), 1)
    registry.put_pattern("orders", draft(TEXT + " [x > 1]", start="migrate"), 2)
    registry.pattern_operators.move("p", "pause")
    registry.put_pattern("orders", draft(TEXT + " [x > 2]", start="migrate"), 3)
    assert starts(stores) == ["fresh", "migrate", "fresh"]


def test_a_version_does_not_migrate_to_another_key(registry, stores):
    registry.put_pattern("orders", draft(), 1)
    with pytest.raises(MigrationRefused, match="is matched by the correlation key and would be"):
        registry.put_pattern("orders", draft(start="migrate", route="customer"), 2)
    assert controls(stores) == ["pattern-on"]


def routes(client):
    return {stream.decode(): names.decode() for stream, names in client.hgetall(ROUTES_KEY).items()}


def test_routes_are_in_use_while_a_pattern_sees_events_on_them(registry, client):
    for name, route in [("a", "customer"), ("b", "customer"), ("c", "place"), ("d", "")]:
        registry.put_pattern("orders", draft(name=name, route=route), 1)
    registry.put_pattern("payments", draft(name="e", route="place"), 1)
    assert routes(client) == {"orders": "customer place", "payments": "place"}
    registry.pattern_operators.remove("a")
    registry.pattern_operators.move("c", "pause")
    assert routes(client) == {"orders": "customer", "payments": "place"}
    registry.pattern_operators.remove("b")
    registry.pattern_operators.move("c", "resume")
    registry.pattern_operators.remove("e")
    assert routes(client) == {"orders": "place"}
    registry.put_pattern("orders", draft(name="c", route=""), 2)
    assert routes(client) == {}
    assert client.keys("forestall:route-users:*") == []


def test_routes_of_changes_whose_reply_was_lost_are_right(lossy, client):
    lossy.put_pattern("orders", draft(route="customer"), 1)
    lossy.put_pattern("orders", draft(name="q", route="customer"), 1)
    lossy.pattern_operators.remove("p")
    assert routes(client) == {"orders": "customer"}
    lossy.pattern_operators.move("q", "pause")
    assert routes(client) == {}


def test_records_and_tags_of_patterns_have_the_form_of_earlier_releases(registry, client):
    registry.declare_stream(ORDERS)
    registry.put_pattern("orders", draft(severity="high", into="hints"), 7)
    members = {"name": "p", "stream": "orders", "text": TEXT, "version": 1, "is_active": True, "registered_us": 7}
    members |= {"is_guarded": True, "route": "", "is_paused": False, "severity": "high", "stage": "running"}
    members |= {"suspension": None, "into": "hints"}
    assert orjson.loads(client.hget(PREFIX + "patterns", "p")) == {"format": 1, **members}
    digest = blake2b(orjson.dumps(members, option=orjson.OPT_SORT_KEYS), digest_size=12)
    assert tag_of(registry.pattern("p")) == digest.hexdigest()
    client.hset(PREFIX + "patterns", "old", orjson.dumps({"format": 1, **members, "name": "old"}))
    old = registry.pattern("old")
    assert (old.kind, old.text, old.is_guarded, old.listens_to) == ("pattern", TEXT, True, {"orders"})
    assert [one.into for one in old.feeders] == ["hints"]


@pytest.mark.parametrize("kind", ["pattern", "tally"])
def test_a_version_keeps_each_feed_of_earlier_versions_once(registry, kind):
    registry.declare_stream(ORDERS)
    operators = registry.operators(kind)

    def put(into, **more):
        body = {"text": f"{TEXT} INTO {into}", "is_guarded": True}
        return operators.put("orders", OperatorDraft(kind=kind, name="p", body=body, into=into, **more), 0)[0]

    put("never", state="draft")
    first, second = ("orders", "", "hints"), ("orders", "k", "others")
    assert put("hints").former_feeds == ()
    assert put("others", route="k").former_feeds == (first,)
    for _ in range(2):
        assert sorted(put("").former_feeds) == [first, second]
        assert put("hints").former_feeds == (second,)
    operators.remove("p")
    assert put("").former_feeds == (second, first)
    assert [(one.stream, one.key, one.into) for one in registry.timing_feeders()] == [second, first]
