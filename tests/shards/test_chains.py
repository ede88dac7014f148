"""Rounds of a project over finite events find what it means, whatever the number of shards."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from shards import ChainPlan, ChainShard, RowBlock
from streams import Event, PatternOn, StreamDeclaration, StreamOn
from tests.shards.naive_projects import Project, batch_of, projects
from tests.shards.test_derived_projects import told


def found_in_rounds(project: Project, shards: int) -> list[RowBlock]:
    """What all rounds find; what is handed on comes in an order that has no meaning."""
    plan = ChainPlan(tuple(project.records))
    waiting: dict[str, list[Event]] = defaultdict(list, {name: list(some) for name, some in project.events.items()})
    rows: list[RowBlock] = []
    for number, streams in enumerate(plan.rounds):
        handed: list[tuple[str, Event]] = []
        for shard in range(shards):
            one = ChainShard(plan, number, shard)
            found: list[RowBlock] = []
            for stream in streams:
                parts = batch_of(waiting[stream]).split_by_shard(shards) if waiting[stream] else {}
                if shard in parts:
                    found += one.feed(stream, "", parts[shard])
            found += one.finish()
            handed += one.handed_on(found)
            rows += found
        for stream, event in reversed(handed):
            waiting[stream].append(event)
    return rows


@settings(max_examples=60, deadline=None)
@given(projects(), st.sampled_from((1, 3, 8)))
def test_rounds_find_what_the_project_means(project: Project, shards: int) -> None:
    assert told(found_in_rounds(project, shards)) == project.outputs()


def test_a_round_has_the_streams_whose_events_stay_in_their_shards() -> None:
    declared = [StreamDeclaration(name="s")]
    declared += [StreamDeclaration(name=name, derived=True) for name in ("same", "other", "both", "last")]
    feeds = [("s", "same"), ("s", "other KEY v"), ("other", "both"), ("same", "both"), ("both", "last")]
    records = [(one.name, StreamOn(one)) for one in declared]
    patterns = [
        (stream, PatternOn(name=f"p{n}", version=1, text=f"PATTERN p{n} EVENT _ x RETURN x.v AS v INTO {into}"))
        for n, (stream, into) in enumerate(feeds)
    ]
    assert ChainPlan((*records, *patterns)).rounds == (("s", "same"), ("other", "both", "last"))
    assert ChainPlan(()).rounds == ()
