"""What a notebook shows of results: escaped, bounded, and with the counts of the result."""

from __future__ import annotations

import pytest
from defusedxml import ElementTree

import forestall
from forestall.showing import ShownEvent, table_html, time_line

TREE = "tree: {sequence: [A, {xor: [B, C]}, D]}"
ROWS = [
    {"id": f"{key}<{at}>", "type": event_type, "time": 1_767_225_600 + at, "key": key}
    for key, trace in (("<k>", "ABD"), ("m", "ACD"))
    for at, event_type in enumerate(trace)
]


@pytest.fixture
def result():
    return forestall.match(ROWS, "PATTERN p EVENT SEQ(A a, B b)", workflow=TREE)


def test_a_result_shows_its_counts_its_process_and_its_first_rows(result):
    shown = result._repr_html_()
    assert "6 events, 1 matches" in shown
    assert "<svg" in shown
    assert "&lt;k&gt;&lt;0&gt;" in shown
    assert "<k>" not in shown
    assert "followed exactly" in shown


def test_the_process_has_the_number_of_events_beside_each_activity(result):
    tree = ElementTree.fromstring(result.picture().svg)
    texts = ["".join(one.itertext()) for one in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert any("2" in text for text in texts)
    assert any("1" in text for text in texts)


def test_a_result_without_a_model_has_no_process(result):
    plain = forestall.match(ROWS, "PATTERN p EVENT SEQ(A a, B b)")
    assert "<svg" not in plain._repr_html_()
    with pytest.raises(forestall.FrameRefused, match="there is no model to draw"):
        plain.picture()


def test_a_time_line_has_each_event_with_the_aliases_that_bind_it(result, tmp_path):
    picture = result.timeline("<k>")
    tree = ElementTree.fromstring(picture._repr_svg_())
    texts = ["".join(one.itertext()) for one in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [
        "<k>",
        "2026-01-01T00:00:00.000000Z  A (a)",
        "2026-01-01T00:00:01.000000Z  B (b)",
        "2026-01-01T00:00:02.000000Z  D",
    ]
    picture.save(tmp_path / "k.svg")
    assert (tmp_path / "k.svg").read_text() == picture.svg
    with pytest.raises(forestall.FrameRefused, match="no event has the key 'x'"):
        result.timeline("x")


def test_long_time_lines_and_tables_are_cut():
    events = [ShownEvent("A", number, str(number), ()) for number in range(300)]
    assert "the first 200 of 300 events" in time_line("k", events).svg
    assert time_line("k", []).svg.startswith("<svg")
    table = forestall.simulate(TREE, 10)
    assert "the first 10 of 30" in table_html("events", table)


def test_conformance_shows_the_ways_of_leaving_the_model():
    rows = [*ROWS, {"id": "x", "type": "X", "time": 1_767_225_700, "key": "m"}]
    shown = forestall.conformance(rows, TREE)._repr_html_()
    assert "2 transactions: 1 conform (50.0%)" in shown
    assert "<td>X</td>" in shown
