"""Questions to aggregates on a page: the filter that a reader writes, and the figures of the answer."""

import pytest

from console.formats import figure
from console.views.asking import read_filter


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", {}),
        ("region=north", {"region": "north"}),
        ("level=2, share=-0.5", {"level": 2, "share": -0.5}),
        ("ok=true,late = false", {"ok": True, "late": False}),
        ("code=007,name=null,empty=", {"code": "007", "name": "null", "empty": ""}),
    ],
)
def test_a_filter_on_numbers_and_booleans_has_their_types(text, where):
    assert read_filter(text) == (where, "")
    assert [type(value) for value in read_filter(text)[0].values()] == [type(value) for value in where.values()]


def test_a_filter_without_a_value_is_refused():
    assert "“north” is not a filter" in read_filter("region=north, north")[1]


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12"), (12_000.0, "12,000"), (1.5, "1.50"), (0.002, "0.002"), (-0.12345, "-0.123"), (0.0, "0")],
)
def test_small_figures_have_significant_digits(value, text):
    assert figure(value) == text
