"""A refused cursor is shown whole up to a hundred characters."""

import pytest

from service.errors import InvalidCursor
from service.stores.cursors import NUMBER, PLACE, require_cursor


@pytest.mark.parametrize(("after", "shown"), [("x" * 100, "x" * 100), ("x" * 101, "x" * 100 + "…")])
def test_a_long_one_is_cut(after, shown):
    with pytest.raises(InvalidCursor, match=f"after='{shown}' is not a cursor"):
        require_cursor(after, NUMBER)


def test_the_place_before_all_is_no_cursor():
    require_cursor("0-1", PLACE)
    with pytest.raises(InvalidCursor):
        require_cursor("00-0", PLACE)
