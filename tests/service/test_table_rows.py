"""Changes of single rows of a table that another process changes at the same time."""

import pytest

from service.errors import PreconditionFailed
from service.registering.tables import TableLibrary, TableUpload
from service.stores import Condition
from streams.tables import TableDeclaration, TableRefused

pytestmark = pytest.mark.redis


@pytest.fixture
def tables(stores, settings, clock):
    return TableLibrary(stores, settings, clock)


@pytest.fixture
def others(other, settings, clock):
    """The tables as another process sees them."""
    return TableLibrary(other, settings, clock)


@pytest.fixture
def upload(tmp_path):
    def make(tables, text):
        path = tmp_path / "rows.csv"
        path.write_text(text)
        return tables.put(
            TableUpload(name="limits", path=path, format="csv", declaration=TableDeclaration(key=("who",)))
        ).record

    return make


def test_a_row_is_read_under_the_columns_that_it_is_stored_with(tables, others, late, upload):
    upload(tables, "who,most\nx,5\n")
    late(tables.store._book, lambda: upload(others, "who,name,most\nx,Ann,5\n"))
    assert tables.change_row("limits", ["x"], {"most": 7}).record.tag == "limits@2.1"
    assert others.rows("limits").to_pylist() == [{"who": "x", "name": None, "most": 7}]


def test_values_of_a_row_follow_their_columns(tables, others, late, upload):
    upload(tables, "who,low,high\nx,1,9\n")
    late(tables.store._book, lambda: upload(others, "who,high,low\nx,9,1\n"))
    tables.change_row("limits", ["x"], {"low": 2, "high": 8})
    assert others.rows("limits").to_pylist() == [{"who": "x", "high": 8, "low": 2}]


def test_a_row_of_columns_that_are_gone_is_refused(tables, others, late, upload):
    upload(tables, "who,most\nx,5\n")
    late(tables.store._book, lambda: upload(others, "who,least\nx,1\n"))
    with pytest.raises(TableRefused, match="no column 'most'"):
        tables.change_row("limits", ["x"], {"most": 7})
    assert others.rows("limits").to_pylist() == [{"who": "x", "least": 1}]


@pytest.fixture
def full(tables, upload, monkeypatch):
    """A table whose rows x and y have the value 5, with as many changes as a version may have: its tag."""
    monkeypatch.setattr("service.registering.tables._MOST_CHANGES", 1)
    upload(tables, "who,most\nx,4\ny,5\n")
    return tables.change_row("limits", ["x"], {"most": 5}).record.tag


def test_a_conditional_change_after_the_most_changes_makes_the_next_version(tables, full):
    with pytest.raises(PreconditionFailed):
        tables.change_row("limits", ["y"], {"most": 7}, Condition(matches=("limits@1.0",)))
    assert tables.store.get("limits").tag == full
    assert tables.change_row("limits", ["y"], {"most": 7}, Condition(matches=(full,))).record.tag == "limits@2.0"
    assert tables.rows("limits").to_pylist() == [{"who": "x", "most": 5}, {"who": "y", "most": 7}]


@pytest.mark.usefixtures("full")
def test_a_row_may_be_removed_after_the_most_changes(stores, tables):
    assert tables.change_row("limits", ["y"], None).record.tag == "limits@2.0"
    assert tables.rows("limits").to_pylist() == [{"who": "x", "most": 5}]
    assert [entry.kind.value for entry in stores.log.read_range(0)] == ["table-on", "table-row", "table-on"]


@pytest.mark.usefixtures("full")
def test_of_two_changes_after_the_most_changes_both_are_stored(tables, others, late):
    late(tables.store._book, lambda: others.change_row("limits", ["z"], {"most": 1}))
    assert tables.change_row("limits", ["y"], {"most": 9}).record.tag == "limits@2.1"
    assert {row["who"]: row["most"] for row in others.rows("limits").to_pylist()} == {"x": 5, "y": 9, "z": 1}


def test_of_two_conditional_changes_after_the_most_changes_the_second_is_refused(tables, others, late, full):
    condition = Condition(matches=(full,))
    late(tables.store._book, lambda: others.change_row("limits", ["z"], {"most": 1}, condition))
    with pytest.raises(PreconditionFailed, match=r"limits@2\.0"):
        tables.change_row("limits", ["y"], {"most": 9}, condition)
    assert {row["who"]: row["most"] for row in others.rows("limits").to_pylist()} == {"x": 5, "y": 5, "z": 1}
