"""Matches written by columns are what their values are written as."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfa import parse_patterns
from service.match_text import matches_text
from service.matching import MatchOptions, match_events
from streams import LATEST_US, Event

PLAIN = "PATTERN p EVENT SEQ(A z, B y, A x) WITHIN 9 s"
PATTERNS = [
    PLAIN,
    "PATTERN p EVENT SEQ(A a, B b) PATTERN q EVENT SEQ(B b, A a)",
    "PATTERN p EVENT SEQ(A a, B+ b, C c) WITHIN 9 s",
    "PATTERN p EVENT SEQ(A|B a) PATTERN q EVENT SEQ(A a, OR(B b, C c))",
    "PATTERN p EVENT SEQ(A a, NOT B) WITHIN 2 s",
    "PATTERN p EVENT SEQ(A a, B b) RETURN a.v",
    "PATTERN p EVENT SEQ(A a, C c) SELECT NEXT PATTERN q EVENT C x",
]


@st.composite
def traces(draw):
    """Events of few kinds, times and names."""
    times = sorted(draw(st.lists(st.sampled_from([0, 1, 1_500_000, 2_000_000, 5_000_000, LATEST_US]), max_size=9)))
    return [
        Event(
            id=f"{draw(st.sampled_from(['e', 'é', '']))}{n}", type=draw(st.sampled_from("ABC")), time_us=time, key=key
        )
        for n, (time, key) in enumerate(zip(times, draw(st.lists(st.sampled_from("kj"), min_size=9)), strict=False))
    ]


@pytest.mark.parametrize("text", PATTERNS)
@given(traces(), st.booleans())
def test_text_is_that_of_the_values(text, events, is_open):
    report = match_events(parse_patterns(text), events, options=MatchOptions(is_open=is_open))
    assert report.to_json() == orjson.dumps(report.to_document())


@pytest.mark.parametrize("name", ['"', "\\", "\n", "\x1f"])
def test_names_that_are_escaped_are_not_for_columns(name):
    events = [Event(id=f"{name}{n}", type=kind, time_us=n, key="k") for n, kind in enumerate("ABA")]
    report = match_events(parse_patterns(PLAIN), events)
    assert len(report.matches) == 1
    assert matches_text([columns for output in report.outputs for columns in output.match_columns()]) is None
    assert report.to_json() == orjson.dumps(report.to_document())


def test_matches_of_several_batches_and_patterns_are_in_one_order(monkeypatch):
    monkeypatch.setattr("service.matching.BATCH_ROWS", 3)
    kinds = "ABACABABCBAABA" * 3
    events = [Event(id=f"e{n}", type=kind, time_us=n * 700_000, key="k") for n, kind in enumerate(kinds)]
    text = f"{PLAIN} PATTERN q EVENT SEQ(C c, B b) WITHIN 4 s"
    report = match_events(parse_patterns(text), events)
    assert matches_text([columns for output in report.outputs for columns in output.match_columns()]) is not None
    assert len(report.matches) > 50
    assert report.to_json() == orjson.dumps(report.to_document())
