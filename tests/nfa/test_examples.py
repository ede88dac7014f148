"""The worked examples of the semantics, read from the page: reference, front end and engines agree with each."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from house import ROOT
from house.documents import code_blocks
from nfa import (
    Match,
    Matcher,
    PatternRefused,
    Timeout,
    describe_pattern,
    match_order,
    parse_pattern,
    pattern_from_json,
    pattern_to_json,
)
from streams import EventBatch
from tests.builders.worked_examples import Example, examples_in
from tests.references.patterns.outcome import reference_outcome

BLOCKS = list(code_blocks((ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")))
EXAMPLES = [example for block in BLOCKS if block.language == "examples" for example in examples_in(block.text)]
ANSWERED = [example for example in EXAMPLES if not example.refused]
REFUSED = [example for example in EXAMPLES if example.refused]


def names(examples: list[Example]) -> list[str]:
    return [example.name for example in examples]


def told(example: Example, *, at_once: bool) -> tuple[list[Match], list[Timeout]]:
    """What the matcher finds, the trace in one batch or an event at a time."""
    matcher = Matcher(ties=example.ties)
    matcher.add_pattern(example.text)
    parts = [list(example.events)] if at_once else [[event] for event in example.events]
    outputs = [matcher.process(EventBatch.from_events(part)) for part in parts]
    if not example.is_open:
        outputs.append(matcher.finish())
    matches = [match for output in outputs for match in output.matches()]
    return matches, [timeout for output in outputs for timeout in output.timeouts()]


def test_every_example_is_there() -> None:
    assert names(EXAMPLES) == [f"E{number:02}" for number in range(1, 67)]


@pytest.mark.parametrize("example", ANSWERED, ids=names(ANSWERED))
def test_reference_agrees_with_the_example(example: Example) -> None:
    outcome = reference_outcome(parse_pattern(example.text), example.events, ties=example.ties, is_open=example.is_open)

    def ids(bindings: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, ...]]:
        return {alias: tuple(example.events[place].id for place in places) for alias, places in bindings.items()}

    matches = sorted(
        outcome.matches, key=lambda match: (match.end_us, match.start_us, sorted(ids(match.bindings).items()))
    )
    assert [ids(match.bindings) for match in matches] == list(example.matches)
    assert [ids(partial.bindings) for partial in outcome.timeouts] == list(example.timeouts)


@pytest.mark.parametrize("at_once", [True, False], ids=["one batch", "event by event"])
@pytest.mark.parametrize("example", ANSWERED, ids=names(ANSWERED))
def test_matcher_agrees_with_the_example(example: Example, at_once: bool) -> None:
    matches, timeouts = told(example, at_once=at_once)
    ordered = sorted(matches, key=match_order)
    assert [dict(match.bindings) for match in ordered] == list(example.matches)
    assert [dict(timeout.bindings) for timeout in timeouts] == list(example.timeouts)


@pytest.mark.parametrize("example", ANSWERED, ids=names(ANSWERED))
def test_matcher_detects_when_the_reference_does(example: Example) -> None:
    outcome = reference_outcome(parse_pattern(example.text), example.events, ties=example.ties, is_open=example.is_open)
    matches, timeouts = told(example, at_once=False)
    found = sorted((match.detected_us, match.start_us, match.end_us) for match in matches)
    assert found == sorted((match.detected_us, match.start_us, match.end_us) for match in outcome.matches)
    assert [timeout.due_us for timeout in timeouts] == [timeout.due_us for timeout in outcome.timeouts]


@pytest.mark.parametrize("example", REFUSED, ids=names(REFUSED))
def test_what_the_example_refuses_is_refused(example: Example) -> None:
    with pytest.raises(PatternRefused) as refusal:
        parse_pattern(example.text)
    assert refusal.value.reason == example.refused
    with pytest.raises(PatternRefused) as refusal:
        Matcher().add_pattern(example.text)
    assert refusal.value.reason == example.refused


@pytest.mark.parametrize("example", ANSWERED, ids=names(ANSWERED))
def test_both_forms_of_the_example_say_the_same(example: Example) -> None:
    document = pattern_to_json(parse_pattern(example.text))
    assert pattern_to_json(pattern_from_json(json.loads(json.dumps(document)))) == document
    assert pattern_to_json(parse_pattern(describe_pattern(pattern_from_json(document)))) == document


def test_the_document_of_the_page_is_the_pattern_before_it() -> None:
    (place,) = [place for place, block in enumerate(BLOCKS) if block.language == "json"]
    text, document = BLOCKS[place - 1].text, json.loads(BLOCKS[place].text)
    assert pattern_to_json(parse_pattern(text)) == document
    assert pattern_from_json(document) == parse_pattern(text)
