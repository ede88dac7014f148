"""Pictures of series are well-formed, escape every text, are bounded, and scale their numbers."""

from __future__ import annotations

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given
from hypothesis import strategies as st

from workflows import Panel, draw_series
from workflows.pictures.series import MOST_PANELS, MOST_SERIES

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert('x')</script>&\"\x00\x1b\ud800]]>"


def texts_of(svg: str) -> list[str]:
    return ["".join(item.itertext()) for item in fromstring(svg).iter(f"{SVG}text")]


def places_of(svg: str) -> list[tuple[float, float]]:
    return [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in fromstring(svg).iter(f"{SVG}circle")]


def panel(**series: list[tuple[int, float]]) -> Panel:
    return Panel(title="n", series=series)


def test_each_series_has_a_line_with_a_dot_for_each_number_and_an_entry_of_the_legend() -> None:
    svg = draw_series("logins", [panel(north=[(0, 1), (60, 3)], south=[(30, 2)])])
    texts = texts_of(svg)
    assert [text for text in texts if text in ("n", "north", "south")] == ["n", "north", "south"]
    (begin, end), middle = [(x, y) for x, y in places_of(svg)[:2]], places_of(svg)[2]
    assert begin[0] < middle[0] == (begin[0] + end[0]) / 2 < end[0]
    assert begin[1] > middle[1] == (begin[1] + end[1]) / 2 > end[1]
    assert {"1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000060Z"} < set(texts)


@pytest.mark.parametrize(
    ("numbers", "marks"),
    [
        ([0], ["0", "0.5", "1"]),
        ([7], ["0", "2", "4", "6", "8"]),
        ([-3, 14], ["-5", "0", "5", "10", "15"]),
        ([-0.3, 0], ["-0.3", "-0.2", "-0.1", "0"]),
        ([4e12], ["0", "1e+12", "2e+12", "3e+12", "4e+12"]),
    ],
)
def test_the_scale_has_round_marks_and_zero(numbers: list[float], marks: list[str]) -> None:
    svg = draw_series("", [panel(a=list(enumerate(numbers)))])
    assert texts_of(svg)[1 : 1 + len(marks)] == marks


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 10**15), st.floats(-1e300, 1e300)), max_size=5).map(sorted),
        max_size=12,
    )
)
def test_any_numbers_are_inside_their_panel(series: list[list[tuple[int, float]]]) -> None:
    svg = draw_series("a", [Panel(title="n", series={f"s{place}": points for place, points in enumerate(series)})])
    frames = [item for item in fromstring(svg).iter(f"{SVG}rect") if item.get("class") == "fw-area"]
    for x, y in places_of(svg):
        (frame,) = frames
        left, top = float(frame.attrib["x"]), float(frame.attrib["y"])
        assert left <= x <= left + float(frame.attrib["width"])
        assert top - 0.1 <= y <= top + float(frame.attrib["height"]) + 0.1


@pytest.mark.parametrize("numbers", [[5e-324], [-5e-324], [1e-323, -1e-323], [1e-310, 0.0]])
def test_numbers_next_to_zero_are_drawn(numbers: list[float]) -> None:
    svg = draw_series("tiny", [panel(g=list(enumerate(numbers)))])
    assert svg.count("<circle") == len(numbers)


def test_every_text_is_escaped() -> None:
    svg = draw_series(NASTY, [Panel(title=NASTY, series={NASTY: [(0, 1.0)]})])
    assert "<script" not in svg
    assert sum("<script>" in text for text in texts_of(svg)) == 2


def test_many_series_and_panels_are_left_out() -> None:
    many = {f"s{place}": [(0, 1.0)] for place in range(MOST_SERIES + 3)}
    svg = draw_series("a", [Panel(title="n", series=many)] * (MOST_PANELS + 2))
    assert len(places_of(svg)) == MOST_SERIES * MOST_PANELS
    assert texts_of(svg).count("and 3 more") == MOST_PANELS


def test_long_lines_have_no_dots() -> None:
    svg = draw_series("a", [panel(a=[(place, place % 7) for place in range(300)])])
    assert places_of(svg) == []
    assert draw_series("a", [panel(a=[(place, place % 7) for place in range(300)])]) == svg


def test_without_numbers_a_notice_is_drawn() -> None:
    assert texts_of(draw_series("a", [panel(a=[])])) == texts_of(draw_series("a", [])) == ["no values yet"]
