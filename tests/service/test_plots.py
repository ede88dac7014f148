"""The series of a plot: the numbers of each group over time."""

from service.observing.plots import series_of


def event(second, **data):
    return {"time": f"1970-01-01T00:00:{second:02}Z", "data": data}


def test_groups_have_their_numbers_in_order_and_those_with_most_are_first():
    events = [event(1, region="a", n=1), event(2, region=None, n=2), event(3, region=None, n=3.5)]
    assert series_of(events, ["region"], "n") == {"null": [(2_000_000, 2), (3_000_000, 3.5)], "a": [(1_000_000, 1)]}
    assert list(series_of(events, ["region"], "n")) == ["null", "a"]
    assert series_of(events[:1], [], "n") == {"all events": [(1_000_000, 1)]}


def test_what_is_no_number_is_left_out():
    events = [event(place, a="x", b=7, n=value) for place, value in enumerate(["text", None, True, 1e301, [1], 4])]
    assert series_of([*events, event(9, a="x", b=7)], ["a", "b"], "n") == {"x, 7": [(5_000_000, 4)]}
