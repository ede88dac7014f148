import pytest

from streams import did_you_mean, listed, nearest


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("answerd", ["opened", "answered"], "answered"),
        ("ANSWERED", ["opened", "answered"], "answered"),
        ("zzz", ["opened", "answered"], None),
        ("a", [], None),
        ("a" * 1_000, ["a" * 999], None),
    ],
)
def test_the_nearest_name_is_the_one_most_alike(name, known, found):
    assert nearest(name, known) == found
    assert did_you_mean(name, known) == ("" if found is None else f" (did you mean {found}?)")


def test_of_many_names_the_first_are_listed():
    assert listed(["b", "a"]) == "b, a"
    names = [f"n{number:02}" for number in range(23)]
    assert listed(names) == ", ".join(names[:20]) + " and 3 more"
    assert listed(["x" * 200]) == "x" * 100 + "…"
