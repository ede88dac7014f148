"""Rounds of a project over finite events find what it means, whatever the number of shards."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import DEAD_LETTER, RoundPlan, Variant
from streams import ControlRecord, Event, EventBatch, PatternOn, StreamDeclaration, StreamOn
from tests.shards.naive_projects import Project, Told, batch_of, projects
from tests.shards.rounds import rounds_of
from tests.shards.test_derived_projects import told_bodies
from tests.shards.test_rekeyed_inputs import NAME, records


def plan_of(*records: tuple[str, ControlRecord]) -> RoundPlan:
    return RoundPlan(variants=(Variant(name="project", records=records),))


def found_in_rounds(project: Project, shards: int) -> set[Told]:
    """What all rounds find; what is handed on comes in an order that has no meaning."""
    plan = plan_of(*project.records)
    posted = {name: batch_of(some) for name, some in project.events.items() if some}
    return told_bodies((row.label, body) for row in rounds_of(plan, posted, shards) for body in row.bodies.to_pylist())


@settings(max_examples=60, deadline=None)
@given(projects(), st.sampled_from((1, 3, 8)))
def test_rounds_find_what_the_project_means(project: Project, shards: int) -> None:
    assert found_in_rounds(project, shards) == project.outputs()


def test_a_round_has_the_streams_whose_events_stay_in_their_shards() -> None:
    declared = [StreamDeclaration(name="s")]
    declared += [StreamDeclaration(name=name, derived=True) for name in ("same", "other", "both", "last")]
    feeds = [("s", "same"), ("s", "other KEY v"), ("other", "both"), ("same", "both"), ("both", "last")]
    records = [(one.name, StreamOn(one)) for one in declared]
    patterns = [
        (stream, PatternOn(name=f"p{n}", version=1, text=f"PATTERN p{n} EVENT _ x RETURN x.v AS v INTO {into}"))
        for n, (stream, into) in enumerate(feeds)
    ]
    assert plan_of(*records, *patterns).rounds == (("s", "same"), ("other", "both"))
    assert plan_of().rounds == ()


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("declared", [{}, {"other": "data.other"}], ids=["a path", "a further key"])
def test_refused_keys_of_a_self_join_by_two_keys_are_reported_once(shards: int, declared: dict[str, str]) -> None:
    keyed = {"key": "data.other", "closed_by": "unique"}
    inputs = [{"stream": "s", "as": "x", "closed_by": "unique"}, {"stream": "s", "as": "y", **keyed}]
    document = {"name": NAME, "inputs": inputs, "wait": "auto", "return": {"x": "id(x)", "y": "id(y)"}}
    streams = [StreamDeclaration(name="s", keys=declared)]
    keys = [(n, n + 1) if n % 5 else ("odd", "even") if n % 2 else (n, "even") for n in range(40)]
    events = EventBatch.from_events(
        [Event(id=f"e{n}", type="A", time_us=n, key=str(x), data={"other": str(y)}) for n, (x, y) in enumerate(keys)]
    )
    rows = rounds_of(plan_of(*records(document, streams)), {"s": events}, shards)
    letters = [orjson.loads(body) for row in rows if row.label == DEAD_LETTER.name for body in row.bodies.to_pylist()]
    wanted = {("x", f"e{n}") for n, (key, _) in enumerate(keys) if isinstance(key, str)}
    wanted |= {("y", f"e{n}") for n, (_, key) in enumerate(keys) if isinstance(key, str)}
    assert {("x" if "input 'x'" in one["reason"] else "y", one["event_id"]) for one in letters} == wanted
    assert len({one["id"] for one in letters}) == len(letters) == len(wanted)
