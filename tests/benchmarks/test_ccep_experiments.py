"""The experiments on small streams: everything runs, and what must be equal is."""

import pytest

from benchmarks.ccep.__main__ import run_all
from benchmarks.ccep.experiments import QUICK, SECTIONS, Comparison, compare, distinct_steps, first_occurrences, tasks
from benchmarks.ccep.figures import Figures, change, select
from benchmarks.ccep.modes import R_CEP, all_modes
from benchmarks.ccep.plots import draw_all
from benchmarks.ccep.queries import cell_of, sweep_cells, table_cells
from benchmarks.ccep.report import BEGIN, END, write_report
from benchmarks.ccep.stream import order_stream

MODES = all_modes()


@pytest.mark.parametrize(
    ("sweep", "ratio"), [("Q1 early", (50,)), ("Q1 late", (50,)), ("Q2", (50,)), ("Q3", (50, 50)), ("EP1", (50,))]
)
def test_matcher_holds_what_the_replay_holds_in_every_mode(sweep, ratio):
    cell, figures = cell_of(sweep, ratio), Figures()
    stream = order_stream(cell.orders, orders=80, concurrent=40, seed=9)
    rows = compare(Comparison(cell=cell, stream=stream, seed=9, rows=23), MODES, figures)
    assert figures.disagreements == []
    assert [row.mode for row in rows] == list(MODES)
    run = [row for row in rows if row.engine_peak is not None]
    assert [row.mode for row in run] == [R_CEP, "query", "state", "free", "exact"]
    assert all(row.engine_peak == row.peak for row in run)
    assert run[4].peak <= run[2].peak <= run[1].peak <= run[0].peak
    assert run[4].peak <= run[3].peak


@pytest.mark.slow
@pytest.mark.deep
def test_quick_run_finds_no_disagreement_and_writes_everything(tmp_path):
    figures = Figures()
    todo = tasks(QUICK, MODES)
    run_all(todo, figures)
    assert figures.disagreements == []
    assert {(row.sweep, row.ratio) for row in figures.rows} >= {(cell.sweep, cell.label) for cell in table_cells()}
    assert len({(one.pattern, one.mode) for one in figures.early}) == len(figures.early) == 8
    figures.write(tmp_path / "figures.json")
    assert Figures.read(tmp_path / "figures.json") == figures
    draw_all(figures, tmp_path / "plots")
    drawn = {path.name for path in (tmp_path / "plots").iterdir() if path.stat().st_size > 10_000}
    assert drawn == {"memory.png", "probes.png", "time.png", "q3.png", "targets.png", "bytes.png"}
    results = tmp_path / "RESULTS.md"
    results.write_text("# Measurements\n\nBefore.\n")
    for _ in range(2):
        write_report(figures, results)
    text = results.read_text()
    assert text.startswith("# Measurements\n\nBefore.\n")
    assert text.count(BEGIN) == text.count(END) == 1
    assert text.count("![") == 6


def test_sections_can_be_chosen():
    every = tasks(QUICK, MODES)
    parts = [tasks(QUICK, MODES, [section]) for section in SECTIONS]
    assert [task.label for part in parts for task in part] == [task.label for task in every]
    assert all(parts)


def test_sweeps_go_from_0_to_90_in_steps_of_10():
    cells = sweep_cells()
    assert [cell.ratio for cell in cells if cell.sweep == "Q2 late"] == [(ratio,) for ratio in range(0, 100, 10)]
    assert len([cell for cell in cells if cell.sweep == "Q3"]) == 100
    assert {(cell.sweep, cell.ratio) for cell in table_cells()} <= {(cell.sweep, cell.ratio) for cell in cells}


def test_changes_are_means_over_the_seeds():
    figures, cell = Figures(), cell_of("Q1 early", (90,))
    for seed in (1, 2):
        stream = order_stream(cell.orders, orders=200, concurrent=30, seed=seed)
        figures.rows += compare(Comparison(cell=cell, stream=stream, seed=seed, rows=0), MODES, figures)
    base, own = (select(figures.rows, "Q1 early", "90", mode) for mode in (R_CEP, "state"))
    wanted = 50 * sum(other.peak / one.peak - 1 for one, other in zip(base, own, strict=True))
    assert change(base, own, "peak") == pytest.approx(wanted)
    assert change(base, own, "state_bytes") is None


def test_first_occurrences_and_steps_of_a_known_stream():
    cell = cell_of("Q1 early", (0,))
    stream = order_stream(cell.orders, orders=1, concurrent=1, seed=1)
    assert first_occurrences(stream) == 18
    assert distinct_steps(stream) == 20
