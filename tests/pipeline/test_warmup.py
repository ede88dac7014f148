import os
import subprocess
import sys

import pytest

from constraints import ConstraintSet, Exclusive, Settings, to_document
from pipeline import compiling_beside
from pipeline.warmup import warm_up
from shards import EXERCISES, RoundPlan, Variant, run_exercises
from streams import ConstraintsOn, KeptFolderRefused, PatternOn, StreamDeclaration, StreamOn
from streams.compiling import COMPILING
from streams.kernels.keeping import kept_needs

# What tests and matchers outside the pipeline call.
NEEDLESS = {
    "nfa.kernels.traces.remove_keys",
    "streams.kernels.json_lines.read_lines",
    "streams.kernels.json_lines.copy_spans",
}
UNCALLED = """
import sys
from numba.core.dispatcher import Dispatcher
from shards import EXERCISES
from streams.compiling.running import exercise_of
from streams.kernels.keeping import KeptKernel
from streams.kernels.recording import recorded

called = {needed.name for run in [exercise_of(name) for name in EXERCISES] for needed in recorded(run)}
for module in list(sys.modules.values()):
    for value in list(vars(module).values()) if module.__name__.partition(".")[2].startswith("kernels") else ():
        if isinstance(value, Dispatcher) and isinstance(vars(value).get("_cache"), KeptKernel):
            name = f"{value.py_func.__module__}.{value.py_func.__qualname__}"
            if name not in called:
                print(name)
"""
STREAM = StreamOn(StreamDeclaration(name="s"))
PLAIN = PatternOn(name="p", version=1, text="PATTERN p EVENT SEQ(A a, B b)")
CHOOSY = PatternOn(name="q", version=1, text="PATTERN q EVENT SEQ(A a, B b [v > a.v])")


def plan_of(*controls):
    records = [tuple(("s", one) for one in control) for control in controls]
    return RoundPlan(variants=tuple(Variant(name=str(n), records=some) for n, some in enumerate(records)))


def constraints(**settings):
    known = ConstraintSet.of([Exclusive("A", "B")], settings=Settings(**settings))
    return ConstraintsOn(name="s", version=1, document=to_document(known))


def test_every_kernel_that_the_pipeline_calls_is_compiled_ahead():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "0"}
    words = [sys.executable, "-c", UNCALLED]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) <= NEEDLESS


@pytest.mark.parametrize(
    ("plan", "exercises"),
    [
        (plan_of((STREAM, PLAIN)), ["nfa.exercises:matching:shared"]),
        (plan_of((STREAM, PLAIN, CHOOSY)), ["nfa.exercises:matching:shared,runs"]),
        (
            plan_of((STREAM, constraints(), PLAIN), (STREAM, PLAIN)),
            ["constraints.exercises:guarded:shared,guard", "nfa.exercises:matching:shared"],
        ),
        (
            plan_of((STREAM, constraints(max_monitor_states=1), CHOOSY)),
            ["constraints.exercises:guarded:runs,guard,bits"],
        ),
        (
            plan_of((StreamOn(StreamDeclaration(name="s", idle_timeout=9.0)), PLAIN)),
            ["nfa.exercises:matching:shared,idle"],
        ),
    ],
)
def test_a_backtest_needs_what_its_variants_run(plan, exercises):
    assert run_exercises(plan) == exercises


def test_compiling_goes_on_beside_the_block(monkeypatch):
    said = []

    def compile_kernels(exercises, report, *, stop):
        said.append(exercises)
        report(COMPILING)

    monkeypatch.setattr("pipeline.warmup.compile_kernels", compile_kernels)
    with compiling_beside(EXERCISES, said.append):
        said.append("Spark has started") if len(said) == 2 else None
    assert said[:2] == [EXERCISES, COMPILING]


def test_what_compiling_refuses_is_raised_after_the_block(monkeypatch):
    def compile_kernels(exercises, report, *, stop):
        raise KeptFolderRefused("others may write to it")

    monkeypatch.setattr("pipeline.warmup.compile_kernels", compile_kernels)
    done = []
    with pytest.raises(KeptFolderRefused), compiling_beside(EXERCISES, print):
        done.append("the block")
    assert done == ["the block"]


def test_a_failing_block_ends_compiling(monkeypatch):
    ended = []

    def compile_kernels(exercises, report, *, stop):
        ended.append(stop.wait(300))

    monkeypatch.setattr("pipeline.warmup.compile_kernels", compile_kernels)
    with pytest.raises(ZeroDivisionError), compiling_beside(EXERCISES, print):
        ended.append(1 // 0)
    assert ended == [True]


@pytest.mark.spark
def test_kernels_are_compiled_into_the_shared_folder(spark):
    warm_up(spark.sparkContext)
    assert spark.conf.get("spark.executorEnv.NUMBA_CACHE_DIR") == os.environ["NUMBA_CACHE_DIR"]
    found = (
        "nfa.kernels.runs.rows",
        "joins.kernels.windowed",
        "aggregates.kernels.asking",
        "streams.kernels.key_index",
    )
    for exercise, kernels in zip(EXERCISES, found, strict=True):
        needs = kept_needs(exercise)
        assert needs is None or any(kernels in name for name in needs), exercise
