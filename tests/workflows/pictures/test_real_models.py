"""Models of many tools can be drawn, by their own drawing and without it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from defusedxml.ElementTree import fromstring

from workflows import ModelRefused, ReadOptions, draw, read_model

MODELS = Path(__file__).resolve().parents[4] / "shared" / "data" / "models"
FILES = [*(MODELS / "miwg" / "Reference").glob("*.bpmn"), *(MODELS / "pm4py").glob("*.*")]


def events_of(svg: str) -> Counter[str]:
    groups = fromstring(svg).iter("{http://www.w3.org/2000/svg}g")
    return Counter(event for item in groups if (event := item.get("data-event")))


@pytest.mark.skipif(not FILES, reason="shared data absent (issue #5)")
def test_models_can_be_drawn() -> None:
    drawn = 0
    for path in sorted(FILES):
        try:
            model = read_model(path.read_bytes(), ReadOptions())
        except ModelRefused:  # several processes, or a meaning that would be lost
            continue
        drawn += 1
        laid_out = events_of(draw(replace(model, diagram=None)))
        assert laid_out, path
        picture = draw(model, dict.fromkeys(laid_out, 2))
        shown = events_of(picture)
        if model.diagram is not None:
            assert shown == Counter(shape.event for shape in model.diagram.shapes if shape.event is not None), path
            assert set(shown) <= set(laid_out), path
        assert "seen 2 times" in picture or not shown, path
    assert drawn >= 20
