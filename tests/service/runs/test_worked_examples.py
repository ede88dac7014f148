"""The worked examples of the semantics, answered as ``forestall match`` answers them."""

from __future__ import annotations

import pytest

from house import ROOT
from house.documents import code_blocks
from nfa import parse_pattern
from tests.builders.worked_examples import Example, examples_in
from tests.service.runs.reports import report_on, shown

BLOCKS = list(code_blocks((ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")))
EXAMPLES = [example for block in BLOCKS if block.language == "examples" for example in examples_in(block.text)]
ANSWERED = [example for example in EXAMPLES if not example.refused]


def test_the_page_has_its_examples() -> None:
    assert {f"E{number:02}" for number in range(1, 62)} <= {example.name for example in ANSWERED}


@pytest.mark.parametrize("example", ANSWERED, ids=[example.name for example in ANSWERED])
def test_every_example_is_answered(example: Example) -> None:
    patterns = [parse_pattern(example.text)]
    document = shown(report_on(patterns, example.events, ties=example.ties, is_open=example.is_open))
    assert bindings(document["matches"]) == list(example.matches)
    assert bindings(document["timeouts"]) == list(example.timeouts)


def bindings(found: list[dict]) -> list[dict]:
    return [{alias: tuple(ids) for alias, ids in one["bindings"].items()} for one in found]
