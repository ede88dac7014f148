"""Changes of single rows of a table that another process changes at the same time."""

import pytest

from service.registering.tables import TableLibrary, TableUpload
from streams.tables import TableRefused, TableWish

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
        return tables.put(TableUpload(name="limits", path=path, format="csv", wish=TableWish(key=("who",)))).record

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
