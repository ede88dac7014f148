import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.entries import StoredEntry
from shards.kinds.patterns import alert_id
from shards.kinds.patterns.result_kinds import ENDING
from shards.rows import dead_letter, row_id
from streams import ControlRecordError


def test_the_id_of_an_alert_never_changes():
    assert alert_id("orders", "p", 1, "k", {"a": ("e1",), "b": ("e2", "e3")}) == "e29f92b2e918dbd5ac620b2ffdb35a8b"


def test_the_order_of_aliases_does_not_matter():
    one = alert_id("orders", "p", 1, "k", {"a": ("e1",), "b": ("e2",)})
    assert one == alert_id("orders", "p", 1, "k", {"b": ("e2",), "a": ("e1",)})


@pytest.mark.parametrize(
    "other",
    [
        ("orders2", "p", 1, "k", {"a": ("e1",)}),
        ("orders", "q", 1, "k", {"a": ("e1",)}),
        ("orders", "p", 2, "k", {"a": ("e1",)}),
        ("orders", "p", 1, "l", {"a": ("e1",)}),
        ("orders", "p", 1, "k", {"b": ("e1",)}),
        ("orders", "p", 1, "k", {"a": ("e2",)}),
        ("orders", "p", 1, "k", {"a": ("e1", "e1")}),
    ],
)
def test_whatever_an_alert_says_is_in_its_id(other):
    assert alert_id(*other) != alert_id("orders", "p", 1, "k", {"a": ("e1",)})


@given(st.lists(st.tuples(st.text(), st.text()), min_size=2, max_size=2, unique=True))
def test_parts_of_an_id_do_not_run_into_each_other(pairs):
    first, second = pairs
    assert row_id(ENDING, *first) != row_id(ENDING, *second)


def test_a_dead_letter_says_what_where_and_why():
    entry = StoredEntry(position="5-1", kind="pattern-on", stream="orders", body=b"{}")
    (row,) = dead_letter(3, entry, ControlRecordError("no name"))
    assert (row.kind, row.stream, row.position, row.shard) == ("dead-letter", "orders", "5-1", 3)
    assert orjson.loads(row.body) == {
        "id": row.id,
        "stream": "orders",
        "shard": 3,
        "position": "5-1",
        "kind": "pattern-on",
        "size_bytes": 2,
        "code": "control-record",
        "reason": "no name",
    }
    assert (row.subject, row.counter) == ("", '["orders","control-record",""]')
