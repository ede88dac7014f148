"""One shard of a backtest is the live shard and the matcher of ``forestall match``; comparisons are exact."""

import orjson
import pytest

from service.backtests.plans import plan_of
from shards import ComparisonCounts, RoundRows, ShardRound, VariantCounts
from shards.entries import StoredEntry
from streams import RecordKind, encode_control
from tests.builders.shards import run_inline
from tests.service.backtests.histories import (
    PATTERNS,
    alerts_as_matches,
    batches_by_shard,
    events_of,
    exact_workflow,
    hand_written,
    matches_of,
    question_about,
    report_of,
    tried,
)

GUARDS = {"free": lambda: None, "constraints": hand_written, "workflow": exact_workflow}


def run(question, events, shards=1):
    """Rows and trials of all shards."""
    plan = plan_of(question)
    newest_us = {"orders": max(event.time_us for event in events)}
    rows: list[RoundRows] = []
    trials: list[ShardRound] = []
    for shard, batches in batches_by_shard(events, shards).items():
        trial = ShardRound(plan, 0, shard)
        rows += trial.begin()
        for batch in batches:
            rows += trial.feed("orders", batch)
        rows += trial.finish(newest_us)
        trials.append(trial)
    return rows, trials


def labelled(rows, label, variant=0):
    return [orjson.loads(body) for body in bodies_of(rows, label, variant)]


def bodies_of(rows, label, variant=0):
    return [body for one in rows if (one.label, one.variant) == (label, variant) for body in one.bodies.to_pylist()]


CASES = [(name, guard, False) for name in PATTERNS for guard in GUARDS] + [
    ("not at the end", "free", True),
    ("not at the end", "workflow", True),
    ("window", "constraints", True),
]


@pytest.mark.parametrize(("name", "guard", "is_open"), CASES)
def test_alerts_are_the_matches_of_the_command_however_many_shards(name, guard, is_open):
    events = events_of(traces=25)
    question = question_about(PATTERNS[name], GUARDS[guard](), is_open=is_open)
    report = report_of(question, events)
    for shards in (1, 4):
        rows, trials = run(question, events, shards)
        assert labelled(rows, "dead-letter") == []
        assert alerts_as_matches(labelled(rows, "alert")) == matches_of(report)
        counts = sum((trial.counts[0] for trial in trials), VariantCounts())
        assert counts.rows["timeout"] == len(report.bodies("timeouts"))
        assert counts.rows["deviation"] == len(report.bodies("deviations"))
        assert counts.rows["ending"] == len(report.bodies("endings"))
        assert counts.events == len(events)


@pytest.mark.parametrize("shards", [1, 4])
def test_alerts_are_those_of_the_live_shards(shards):
    events = events_of()
    question = question_about(PATTERNS["sequence"], exact_workflow())
    (variant,) = plan_of(question).variants
    logs = {}
    for shard, batches in batches_by_shard(events, shards, rows=13).items():
        bodies = [(record.KIND, encode_control(record)) for record in [record for _, record in variant.records]]
        bodies += [(RecordKind.EVENTS, batch.to_bytes()) for batch in batches]
        logs[shard] = [
            StoredEntry(position=f"1-{number}", kind=kind, stream="orders", body=body)
            for number, (kind, body) in enumerate(bodies, start=1)
        ]
    live = sorted(row.body for row in run_inline(logs) if row.kind == "alert")
    assert live
    assert live == sorted(bodies_of(run(question, events, shards)[0], "alert"))


@pytest.mark.parametrize("shards", [1, 4])
def test_two_versions_differ_by_what_was_added_and_lost(shards):
    events = events_of()
    question = question_about(
        "PATTERN p EVENT SEQ(A a [v > 1], F f)", against=tried("PATTERN old EVENT SEQ(A a, F f [v > 2])")
    )
    new, old = (
        {(found[1], found[2]) for found in matches_of(report_of(question_about(text), events))}
        for text in (question.patterns[0].text, question.against[0].text)
    )
    rows, trials = run(question, events, shards)
    counts = sum((trial.comparisons[0] for trial in trials), ComparisonCounts())
    assert (counts.added, counts.lost, counts.same) == (len(new - old), len(old - new), len(new & old))
    assert min(counts.added, counts.lost, counts.same) > 0
    assert {(alert["key"], orjson.dumps(alert["bindings"])) for alert in labelled(rows, "added", 1)} == new - old
    assert {(alert["key"], orjson.dumps(alert["bindings"])) for alert in labelled(rows, "lost", 1)} == old - new
    assert {alert["pattern"] for alert in labelled(rows, "lost", 1)} == {"old"}


def test_other_names_of_aliases_make_no_difference():
    question = question_about("PATTERN p EVENT SEQ(A a, F f)", against=tried("PATTERN p EVENT SEQ(A first, F last)"))
    assert plan_of(question).variants[1].alike == "events"
    _, (trial,) = run(question, events_of())
    (counts,) = trial.comparisons
    assert (counts.added, counts.lost) == (0, 0)
    assert counts.same > 0


def test_several_patterns_are_compared_by_their_names():
    text = "PATTERN p EVENT SEQ(A a, B b)\nPATTERN q EVENT SEQ(A a, C c)"
    question = question_about(text, against=tried("PATTERN q EVENT SEQ(A a, C c)\nPATTERN r EVENT SEQ(A a, D d)"))
    rows, (trial,) = run(question, events_of())
    by_pattern = trial.counts[0].patterns
    (counts,) = trial.comparisons
    assert (counts.same, counts.added) == (by_pattern["q"], by_pattern["p"])
    assert {alert["pattern"] for alert in labelled(rows, "lost", 1)} == {"r"}


def test_without_pruning_the_alerts_of_conforming_traces_are_the_same_and_more_is_held():
    events = events_of(traces=200)
    keys = conforming(events)
    events = [event for event in events if event.key in keys]
    question = question_about(
        "PATTERN p EVENT SEQ(C c, B b)\nPATTERN q EVENT SEQ(A a, B b)", exact_workflow(), compares_pruning=True
    )
    _, (trial,) = run(question, events)
    (counts,), (pruned, unpruned) = trial.comparisons, trial.counts
    assert (counts.added, counts.lost) == (0, 0)
    assert counts.same == pruned.rows["alert"] > 0
    assert pruned.rows["ending"] > unpruned.rows["ending"] == 0
    assert pruned.peak_held < unpruned.peak_held
    assert pruned.busy_ns > 0


def conforming(events):
    traces: dict[str, str] = {}
    for event in events:
        traces[event.key] = traces.get(event.key, "") + event.type
    return {key for key, word in traces.items() if word in ("ABDEF", "ACEDF", "ABEDF")}


def test_without_constraints_is_compared_too():
    question = question_about("PATTERN p EVENT SEQ(A a, NOT C)", exact_workflow(), compares_constraints=True)
    _, (trial,) = run(question, events_of())
    guarded, free = trial.counts
    assert guarded.rows["deviation"] > free.rows["deviation"] == 0


def test_what_differs_beyond_a_bound_is_counted_and_not_held(monkeypatch):
    monkeypatch.setattr("shards.runs.comparing.HELD_DIFFERENCES", 2)
    question = question_about("PATTERN p EVENT SEQ(A a, F f)", against=tried("PATTERN p EVENT SEQ(A a, F f [v > 9])"))
    rows, (trial,) = run(question, events_of())
    (counts,) = trial.comparisons
    assert len(labelled(rows, "added", 1)) == 2
    assert counts.added == trial.counts[0].rows["alert"] == 2 + counts.unlisted > 2


def test_counts_survive_their_documents():
    _, (trial,) = run(question_about(PATTERNS["sequence"], exact_workflow()), events_of())
    (counts,) = trial.counts
    assert VariantCounts.from_document(orjson.loads(orjson.dumps(counts.to_document()))) == counts
    assert (counts + VariantCounts()).to_document() == counts.to_document()


def test_matches_that_are_events_are_listed_as_such():
    events = events_of(traces=25)
    text = PATTERNS["not at the end"]
    alerts = labelled(run(question_about(text, None), events)[0], "alert")
    found = labelled(run(question_about(f"{text} INTO derived", None), events)[0], "derived")
    assert sorted(one["id"] for one in found) == sorted(one["id"] for one in alerts)
    assert {one["into"] for one in found} == {"derived"}
    assert len(matches_of(report_of(question_about(f"{text} INTO derived", None), events))) == len(alerts)
