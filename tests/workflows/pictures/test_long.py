"""Long names are cut, and long drawings stand in rows."""

import re
from itertools import pairwise

import orjson
import pytest

from workflows import ModelFormat, draw, read_model
from workflows.pictures import text
from workflows.pictures.drafting import draft_of
from workflows.pictures.labels import extent
from workflows.pictures.layout import laid_out
from workflows.pictures.rows import in_rows


def tree_model(tree):
    return read_model(orjson.dumps({"tree": tree}), None, ModelFormat.TREE)


def test_a_very_long_name_is_drawn_short_and_costs_steps_in_proportion(monkeypatch):
    measured: list[str] = []
    part = text._part

    def counted(letter):
        measured.append(letter)
        return part(letter)

    monkeypatch.setattr(text, "_part", counted)
    steps: dict[int, list[int]] = {}
    for letters in (10_000, 100_000):
        for name in ("x" * letters, "x y" * (letters // 3), "\u0301" * letters):
            measured.clear()
            picture = draw(tree_model({"sequence": ["Begin", name]}))
            steps.setdefault(letters, []).append(len(measured))
            titles = [title for title in re.findall("<title>(.*?)</title>", picture) if "Begin" not in title]
            assert max(map(len, titles)) <= text.MOST_IN_TITLE
    assert steps[10_000] == steps[100_000]
    assert max(steps[100_000]) < 300_000


def test_a_name_is_whole_in_the_title_up_to_a_limit():
    name = "n" * 1_900
    assert f"<title>{name}</title>" in draw(tree_model({"sequence": ["Begin", name]}))


@pytest.mark.parametrize(("width", "size"), [(40.0, 12.0), (7.0, 11.0), (100.0, 8.0)])
def test_a_word_without_a_break_is_cut_where_the_line_is_full(width, size):
    word = "mmmiiiwwwlle\u0301e\u0301" * 5
    lines = text.wrapped(word, width, size, 999)
    assert "".join(lines) == word
    assert all(len(line) == 1 or text.width_of(line, size) <= width for line in lines)
    for line, following in pairwise(lines):
        assert text.width_of(line + following[0], size) > width


def test_a_long_chain_is_drawn_in_rows():
    names = [f"Task number {number}" for number in range(100)]
    diagram = laid_out(draft_of(tree_model({"sequence": names}).source))
    rows = in_rows(diagram)
    held = extent(rows)
    assert extent(diagram).right > 10_000
    assert held.right - held.left < 2_000
    assert [shape.element for shape in rows.shapes] == [shape.element for shape in diagram.shapes]
    assert len({shape.y for shape in rows.shapes if shape.kind == "task"}) > 5
    by_middle = [(shape.x, shape.x + shape.width, shape.y, shape.y + shape.height) for shape in rows.shapes]
    for edge, (before, after) in zip(rows.edges, pairwise(by_middle), strict=True):
        assert edge.points[0][0] == pytest.approx(before[1])
        assert before[2] < edge.points[0][1] < before[3]
        assert edge.points[-1][0] == pytest.approx(after[0])
        assert after[2] < edge.points[-1][1] < after[3]
        assert all(x1 == x2 or y1 == y2 for (x1, y1), (x2, y2) in pairwise(edge.points))


def test_what_has_no_place_to_break_and_what_is_short_stays_in_one_row():
    chains = [{"sequence": [f"T{branch}-{number}" for number in range(60)]} for branch in range(2)]
    for tree in ({"and": chains}, {"sequence": ["A", "B"]}):
        diagram = laid_out(draft_of(tree_model(tree).source))
        rows = in_rows(diagram)
        assert len(rows.shapes) == len(diagram.shapes)
        assert extent(rows).bottom == extent(diagram).bottom
