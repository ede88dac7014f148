"""Sets as integers, and groups of overlapping sets, against sets of Python."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from constraints import bits_of, members, overlapping

NUMBERS = st.sets(st.integers(0, 200))


def groups_one_by_one(sets: dict[int, list[str]]) -> list[list[int]]:
    """The groups, where each key joins all groups that it overlaps with."""
    groups: list[list[int]] = []
    for key, elements in sets.items():
        touched = [group for group in groups if {one for other in group for one in sets[other]} & set(elements)]
        groups = [group for group in groups if group not in touched] + [[*chain.from_iterable(touched), key]]
    return sorted(sorted(group, key=list(sets).index) for group in groups)


@given(NUMBERS)
def test_a_set_as_an_integer_has_its_numbers_in_ascending_order(numbers: set[int]) -> None:
    assert list(members(bits_of(numbers))) == sorted(numbers)


@given(st.dictionaries(st.integers(0, 20), st.lists(st.sampled_from("abcdefgh"), max_size=3)))
def test_overlapping_sets_are_one_group_even_if_only_others_connect_them(sets: dict[int, list[str]]) -> None:
    found = overlapping(sets)
    assert sorted(found) == groups_one_by_one(sets)
    assert [group[0] for group in found] == [key for key in sets if any(key == group[0] for group in found)]
