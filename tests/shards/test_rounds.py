"""Rounds of a project over finite events find what it means, whatever the number of shards."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from shards import RoundPlan, Variant
from streams import ControlRecord, PatternOn, StreamDeclaration, StreamOn
from tests.shards.naive_projects import Project, Told, batch_of, projects
from tests.shards.rounds import rounds_of
from tests.shards.test_derived_projects import told_bodies


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
