"""Test helpers: histories, and questions of many kinds about them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from constraints import Constraint, ConstraintSet, Exclusive, Prior, following
from nfa import parse_patterns
from service.backtests.questions import Question, TriedPattern
from service.runs.stream_report import StreamReport
from service.runs.stream_run import run_patterns
from streams import Event, EventBatch, StreamDeclaration, render_plain
from workflows import compile_workflow, read_model

WORKFLOW = """
tree:
  sequence:
    - A
    - xor: [B, C]
    - and: [D, E]
    - F
"""

PATTERNS: Mapping[str, str] = {
    "sequence": "PATTERN p EVENT SEQ(A a, F f)",
    "window": "PATTERN p EVENT SEQ(A a, D d) WITHIN 3 s EMIT TIMEOUTS",
    "not at the end": "PATTERN p EVENT SEQ(A a, D d, NOT E) WITHIN 4 s",
    "not within the trace": "PATTERN p EVENT SEQ(A a, NOT C)",
    "not between": "PATTERN p EVENT SEQ(A a, NOT B, D d)",
    "attributes": "PATTERN p EVENT SEQ(A a [v > 2], F f [v > a.v]) RETURN f.v - a.v AS gain",
    "any order": "PATTERN p EVENT AND(B b, D d, E e)",
    "several": "PATTERN p EVENT SEQ(A a, B b)\nPATTERN q EVENT SEQ(C c, F f)",
}

_WORDS = ("ABDEF", "ACEDF", "ABEDF", "ABD", "ACBDE", "FABDE", "AB", "ABCDEF", "ABDEFA")


def events_of(seed: int = 1, traces: int = 40) -> list[Event]:
    """Interleaved traces, some of which keep the workflow, in the order of time with ties."""
    choose = random.Random(seed)
    places = []
    for trace in range(traces):
        time_s = choose.randrange(60)
        for letter in choose.choice(_WORDS):
            places.append((time_s, choose.random(), letter, f"k{trace}"))
            time_s += choose.randrange(4)
    places.sort()
    return [
        Event(id=f"e{number}", type=letter, time_us=time_s * 1_000_000, key=key, data={"v": choose.randrange(6)})
        for number, (time_s, _, letter, key) in enumerate(places)
    ]


def write_lines(path: Path, events: Iterable[Event]) -> Path:
    """Write a file of JSON lines; returns its path."""
    path.write_bytes(b"".join(orjson.dumps(render_plain(event)) + b"\n" for event in events))
    return path


def tried(text: str) -> tuple[TriedPattern, ...]:
    """The patterns of a text."""
    return tuple(TriedPattern(name=pattern.name, text=pattern.text) for pattern in parse_patterns(text))


def hand_written() -> ConstraintSet:
    """Constraints that some of the traces break."""
    constraints: tuple[Constraint, ...] = (Exclusive("B", "C"), Prior("A", "F"))
    return ConstraintSet.of(constraints)


def exact_workflow() -> ConstraintSet:
    """The workflow as an automaton."""
    compiled = compile_workflow(read_model(WORKFLOW.encode()))
    found = compiled.extraction
    return following(
        ConstraintSet(),
        workflow="w",
        version=1,
        constraints=found.constraints,
        end_events=frozenset(found.end),
        automaton=compiled.automaton,
    )


def question_about(
    text: str, constraint_set: ConstraintSet | None = None, *, is_open: bool = False, **more: Any
) -> Question:
    """A question about patterns of a stream ``orders``."""
    end = () if constraint_set is None else tuple(sorted(constraint_set.end_events))
    declaration = StreamDeclaration(name="orders", key="key", end_events=end)
    return Question(
        declaration=declaration, patterns=tried(text), constraint_set=constraint_set, is_open=is_open, **more
    )


def report_of(question: Question, events: list[Event]) -> StreamReport:
    """The results of ``forestall match``."""
    rules, declaration = question.constraint_set, question.declaration
    if rules is not None and question.prune is not None:
        rules = replace(rules, settings=replace(rules.settings, prune=question.prune))
    patterns = parse_patterns("\n".join(pattern.text for pattern in question.patterns))
    return run_patterns(patterns, EventBatch.from_events(events), rules, declaration, is_open=question.is_open)


def matches_of(report: StreamReport) -> list[tuple[Any, ...]]:
    """The members in which matches and alerts must agree: all but ids, versions and explanations."""
    return alerts_as_matches({"returns": {}, **match} for match in report.matches)


def alerts_as_matches(alerts: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Alerts in the form of ``matches_of``."""
    return sorted(
        (
            alert["pattern"],
            alert["key"],
            orjson.dumps(alert["bindings"]),
            alert["start"],
            alert["end"],
            alert["detected_at"],
            orjson.dumps(alert["returns"]),
            alert.get("decided_by") or "",
            alert.get("deviating", False),
        )
        for alert in alerts
    )


def batches_by_shard(events: list[Event], shards: int, rows: int = 7) -> dict[int, list[EventBatch]]:
    """The events of each shard in batches of some rows."""
    parts = EventBatch.from_events(events).split_by_shard(shards)
    return {
        shard: [part.slice(start, min(rows, len(part) - start)) for start in range(0, len(part), rows)]
        for shard, part in parts.items()
    }
