"""Changes of records between whose reading and commit another process changes the same record."""

from dataclasses import replace

import pytest

from service.errors import PreconditionFailed
from service.stores import ANY, Condition, pattern_draft
from service.stores.registry.event_types import versions_key
from streams import StreamDeclaration, stops_key
from streams.tables import TableDeclaration, keep_table

pytestmark = pytest.mark.redis

SCHEMA = {"type": "object"}


@pytest.fixture
def limits(stores, tmp_path):
    """The store of a table with the row (x, 5)."""
    path = tmp_path / "rows.csv"
    path.write_text("who,most\nx,5\n")
    version = keep_table(path, "csv", TableDeclaration(key=("who",)))
    stores.tables.put(replace(version, name="limits"), stores.tables.files.path(version.digest), 0)
    return stores.tables


def row(key, most):
    """Reads a row under any version of the table."""
    return lambda _: (key, (key, most))


def test_of_two_changes_of_rows_both_are_stored(stores, other, late, limits):
    late(limits._book, lambda: other.tables.change_row("limits", row("b", 2), ANY))
    record = limits.change_row("limits", row("a", 1), ANY)
    assert (record.changes, limits.changes(record)) == (2, {"a": ["a", 1], "b": ["b", 2]})
    assert [entry.kind.value for entry in stores.log.read_range(0)].count("table-row") == 2


def test_of_two_changes_of_rows_with_one_tag_the_second_is_refused(other, late, limits):
    condition = Condition(matches=(limits.get("limits").tag,))
    late(limits._book, lambda: other.tables.change_row("limits", row("x", 2), condition))
    with pytest.raises(PreconditionFailed):
        limits.change_row("limits", row("x", 1), condition)
    assert limits.changes(limits.get("limits")) == {"x": ["x", 2]}


def test_of_two_schemas_both_are_stored(client, stores, other, late):
    stores.registry.declare_stream(StreamDeclaration(name="orders"), is_checked=True)
    types = stores.registry.event_types
    types.put("orders", "A", SCHEMA, 1)
    late(types._book, lambda: other.registry.event_types.put("orders", "B", SCHEMA, 2))
    changed, is_new = types.put("orders", "A", {**SCHEMA, "title": "new"}, 3)
    assert (changed.schema["title"], changed.version, is_new) == ("new", 4, False)
    assert types.get("orders", "A") == changed
    assert (sorted(types.all("orders")), client.llen(versions_key("orders"))) == (["A", "B"], 3)


def test_a_schema_is_removed_while_another_changes(stores, other, late):
    stores.registry.declare_stream(StreamDeclaration(name="orders"), is_checked=True)
    types = stores.registry.event_types
    types.put("orders", "A", SCHEMA, 1)
    late(types._book, lambda: other.registry.event_types.put("orders", "B", SCHEMA, 2))
    types.remove("orders", "A")
    assert sorted(types.all("orders")) == ["B"]


def test_a_schema_that_is_removed_at_once_is_answered(stores, other):
    stores.registry.declare_stream(StreamDeclaration(name="orders"), is_checked=True)
    types = stores.registry.event_types
    commit = types._book._commit

    def commit_early(**given):
        reply = commit(**given)
        other.registry.event_types.remove("orders", "A")
        return reply

    types._book._commit = commit_early
    changed, is_new = types.put("orders", "A", SCHEMA, 1)
    assert (changed.schema, is_new, types.all("orders")) == (SCHEMA, True, {})


def test_a_pause_of_the_backlog_meets_a_plain_pause(client, stores, other, late):
    stores.registry.declare_stream(StreamDeclaration(name="orders", key="key"))
    stores.registry.put_pattern("orders", pattern_draft(name="p", text="PATTERN p EVENT A a"), 1)
    late(stores.registry.pattern_operators._book, lambda: other.registry.pattern_operators.move("p", "pause"))
    paused, _ = stores.registry.pattern_operators.move("p", "pause", stops=True)
    assert paused.state == "paused"
    shards = range(stores.log.layout.read().shards)
    assert [client.hlen(stops_key(shard)) for shard in shards] == [1 for _ in shards]


def test_the_keys_of_calls_expire(client, limits):
    limits.change_row("limits", row("a", 1), ANY)
    calls = client.keys("forestall:change:*")
    assert calls
    assert all(0 < client.pttl(call) <= 60_000 for call in calls)
