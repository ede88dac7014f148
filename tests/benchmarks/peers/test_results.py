"""Results of the engines are compared with each other and printed as a table."""

from dataclasses import replace

import pytest

from benchmarks.peers.axes import AXES, SCALING
from benchmarks.peers.cases import CASES
from benchmarks.peers.differences import DIFFERENCES
from benchmarks.peers.planning import plan
from benchmarks.peers.plots import draw_axes
from benchmarks.peers.report import allowances, write_report
from benchmarks.peers.results import Allowance, Record, judge, keep, kept_in, table
from benchmarks.peers.systems import SYSTEMS
from nfa import Matcher
from streams import Event, EventBatch

OURS = Record(
    case="W next", system="library", source="memory", threads=1, variant="", events=1_000_000, version="kernels x",
    start_up_s=0.5, seconds=0.05, whole_s=0.55, matches=38_821, digest="aa", peak_bytes=300_000_000, lines=1,
)  # fmt: skip
FLINK = replace(OURS, system="flink-cep", source="file", seconds=10.0, start_up_s=5.0, whole_s=15.0, lines=4)
COMMAND = replace(FLINK, system="forestall match", seconds=0.8, start_up_s=2.0, whole_s=2.8, lines=1)
SIDDHI = replace(OURS, system="siddhi", seconds=2.0, matches=38_822, digest="bb", lines=2)
EXPECTED = {"W next": {1_000_000: 38_821}}
ALLOWED = {("W next", "siddhi"): Allowance(difference="window", matches={1_000_000: 38_822})}


def test_equal_answers_agree():
    judged = judge([OURS, FLINK], EXPECTED, ALLOWED)
    assert (judged.disagreements, judged.notes, judged.alone) == ((), (), ())


def test_other_events_in_as_many_matches_disagree():
    judged = judge([OURS, replace(FLINK, digest="cc")], EXPECTED, ALLOWED)
    [told] = judged.disagreements
    assert told.startswith("W next, 1,000,000 events: flink-cep from file finds 38,821 matches (cc)")


def test_a_known_difference_is_a_note_if_it_is_just_that():
    assert judge([OURS, SIDDHI], EXPECTED, ALLOWED).notes == (("W next", "siddhi", "window"),)
    assert judge([OURS, replace(SIDDHI, matches=38_830)], EXPECTED, ALLOWED).disagreements
    assert judge([OURS, SIDDHI], EXPECTED, {}).disagreements


def test_ours_is_compared_with_what_was_agreed():
    judged = judge([replace(OURS, matches=1), replace(FLINK, matches=1)], EXPECTED, ALLOWED)
    assert judged.disagreements == ("W next, 1,000,000 events: library finds 1 matches instead of 38,821",)


def test_runs_with_other_events_are_not_compared():
    judged = judge([OURS, replace(FLINK, events=20, matches=0, digest="0")], EXPECTED, ALLOWED)
    assert judged.disagreements == ()
    assert len(judged.alone) == 2


def test_what_is_not_done_is_told_and_not_compared():
    missing = replace(SIDDHI, status="unavailable", reason="no javac", matches=0, digest="")
    assert judge([OURS, missing], EXPECTED, ALLOWED).disagreements == ()
    assert "| siddhi | 1,000,000 | unavailable: no javac |" in table([OURS, missing], {"W next": "title"})


def test_table_has_both_ways_of_an_engine_in_one_row():
    text = table(
        [FLINK, replace(FLINK, source="memory", seconds=8.0, cpu_s=10.0), COMMAND], {"W next": "title", "W all": "none"}
    )
    assert "### W all" not in text
    assert "| flink-cep | 1,000,000 | 125.0 k | 100.0 k | 100.0 k | 66.7 k | 5.0 | 300 | 4 | 38,821 |" in text
    assert "| forestall match | 1,000,000 |  |  | 1.25 M | 357.1 k | 2.0 | 300 | 1 | 38,821 |" in text


def test_start_up_that_hides_the_job_is_told_as_such():
    assert "| - | 357.1 k |" in table([replace(COMMAND, seconds=0.0)], {"W next": "title"})


def test_report_tells_ratios_and_draws(tmp_path):
    records = [OURS, FLINK, COMMAND, SIDDHI]
    text = write_report(records, judge(records, EXPECTED, ALLOWED), CASES, tmp_path)
    assert "library 40.0 x siddhi (memory)" in text
    assert "forestall match 12.5 x flink-cep, whole job; 5.4 x with start-up" in text
    assert DIFFERENCES["window"].note in text
    assert all((tmp_path / name).stat().st_size > 5_000 for name in ("speed.png", "memory.png"))
    assert (tmp_path / "table.md").read_text() in text


def test_records_are_kept_and_the_last_of_a_run_counts(tmp_path):
    path = tmp_path / "new" / "runs.jsonl"
    assert kept_in(path) == []
    for record in (OURS, FLINK, replace(FLINK, seconds=9.0)):
        keep(path, record)
    assert kept_in(path) == [OURS, replace(FLINK, seconds=9.0)]


def test_plan_gives_the_library_what_every_other_engine_is_given():
    for is_quick in (False, True):
        runs = plan(CASES, SYSTEMS, is_quick=is_quick)
        had = {(run.case.name, run.events) for run in runs if run.system.name == "library"}
        assert {(run.case.name, run.events) for run in runs} == had
        assert len({run.empty.run for run in runs}) == len(runs)
    assert {run.events for run in plan(CASES, SYSTEMS, events=500)} == {500}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_engine_states_a_case_or_says_why_not(case):
    for system in SYSTEMS:
        wording = case.wording(system.wording)
        assert bool(wording.text) != bool(wording.cannot)
        if wording.text:
            assert len(set(case.texts(system.wording))) == len(case.patterns)


def test_known_differences_are_there():
    assert {allowance.difference for allowance in allowances(CASES).values()} <= set(DIFFERENCES)


@pytest.mark.parametrize("difference", DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_example_of_a_difference_is_true_of_ours(difference):
    matcher = Matcher()
    matcher.add_pattern(difference.pattern)
    events = [
        Event(id=f"e{place}", type=kind, time_us=second * 1_000_000, key="k")
        for place, (kind, second) in enumerate(difference.events)
    ]
    assert matcher.process(EventBatch.from_events(events)).n_matches == difference.ours != difference.theirs


def test_what_varies_is_drawn_as_far_as_it_was_run(tmp_path):
    axis, other = AXES[1], AXES[3]
    records = [replace(one, case=case.name) for case in axis.points.values() for one in (OURS, SIDDHI)]
    draw_axes(records, [axis, other], tmp_path / "some.png")
    draw_axes([], [axis, other], tmp_path / "none.png")
    assert [path.name for path in tmp_path.iterdir()] == ["some.png"]


def test_steps_are_said_in_the_words_of_every_engine():
    (case,) = (case for case in SCALING if case.name == "2 steps")
    texts = {system: case.texts(system)[0] for system in ("forestall", "flink-cep", "siddhi", "core")}
    assert "SEQ(T0 a, T1 b) WITHIN 60 s" in texts["forestall"]
    assert 'begin("a", noSkip()).where(type("T0")).followedByAny("b").where(type("T1"))' in texts["flink-cep"]
    assert "every b=S[type == 'T1' and moment - a.moment < 60000L]" in texts["siddhi"]
    assert "WHERE T0; T1\n" in texts["core"]
    assert "WITHIN 60000000 [moment]" in texts["core"]
