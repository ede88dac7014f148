"""Equal matches of a table are kept once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nfa.results.found import MatchTable, without_repeats

BINDINGS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([7, 8, 9, 2**40])), min_size=1, max_size=4)
MATCHES = st.lists(st.tuples(st.integers(0, 2), BINDINGS), max_size=20)


def table_of(matches):
    numbers = np.arange(len(matches))
    bound = [event for _, binding in matches for event in binding]
    return MatchTable(
        patterns=np.array([pattern for pattern, _ in matches], np.int32),
        rows=numbers,
        detected_us=numbers,
        ends=np.cumsum([0, *(len(binding) for _, binding in matches)])[1:].astype(np.int64),
        how=np.zeros(len(matches), np.int8),
        traces=numbers.astype(np.int32),
        aliases=np.array([alias for alias, _ in bound], np.int32),
        sequences=np.array([sequence for _, sequence in bound], np.int64),
    )


def kept_one_by_one(matches, patterns):
    """The numbers of the matches that are kept."""
    seen, kept = set(), []
    for number, (pattern, binding) in enumerate(matches):
        identity = (pattern, *sorted(binding))
        if pattern not in patterns or identity not in seen:
            kept.append(number)
        seen.add(identity)
    return kept


@given(MATCHES, st.lists(st.integers(0, 2), unique=True))
def test_the_first_of_equal_matches_is_kept(matches, patterns):
    found = without_repeats(table_of(matches), patterns)
    kept = kept_one_by_one(matches, patterns)
    expected = table_of([matches[number] for number in kept])
    assert found.rows.tolist() == kept
    assert found.ends.tolist() == expected.ends.tolist()
    assert found.aliases.tolist() == expected.aliases.tolist()
    assert found.sequences.tolist() == expected.sequences.tolist()
