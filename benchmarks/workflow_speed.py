"""Time from an uploaded model to a guarded matcher: reading the model, finding its constraints, building guards.

The models are generated: a tree of 30 tasks on three levels of nesting, the same tree as BPMN, and a BPMN process of 12
parallel branches of three tasks each, whose automaton would have 4^12 states. If the shared data are available, their
largest models are read too. Figures are seconds of one run, and nothing is cached between runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.ccep.queries import QUERIES
from constraints import ConstraintSet, Monitor, following
from nfa import Matcher
from workflows import (
    Activity,
    CompiledWorkflow,
    ExclusiveChoice,
    Loop,
    ModelFormat,
    Parallel,
    ProcessTree,
    ReadOptions,
    Sequence,
    UnsoundWorkflow,
    WorkflowModel,
    compile_workflow,
    order_fulfilment,
    read_model,
)

Result = TypeVar("Result")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
PATTERN = "PATTERN p EVENT SEQ(AND(T3 a, T7 b), T12 c, T25 d)"


def nested() -> ProcessTree:
    """Return a tree of 30 tasks: a sequence of choices and loops of parallel blocks of choices."""
    names = iter(f"T{number}" for number in range(30))

    def choice() -> ProcessTree:
        return ExclusiveChoice((Activity(next(names)), Activity(next(names))))

    def block() -> ProcessTree:
        return Parallel((choice(), Sequence((Activity(next(names)), Activity(next(names)))), Activity(next(names))))

    return Sequence((block(), Loop(body=block()), ExclusiveChoice((block(), block())), block(), block()))


def wide() -> ProcessTree:
    """Return a tree of 12 parallel branches of three tasks."""
    branches = (Sequence(tuple(Activity(f"B{branch}_{task}") for task in range(3))) for branch in range(12))
    return Parallel(tuple(branches))


def timed(make: Callable[[], Result]) -> tuple[float, Result]:
    """Call a function. Return the seconds and its result."""
    begin = time.perf_counter()
    made = make()
    return time.perf_counter() - begin, made


def guarded(compiled: CompiledWorkflow, text: str) -> Matcher:
    """Return a matcher with a pattern, guarded by the workflow."""
    found = compiled.extraction
    constraint_set = following(
        ConstraintSet(),
        workflow=compiled.model.name or "model",
        version=1,
        constraints=found.constraints,
        end_events=frozenset(found.end),
        automaton=compiled.automaton,
    )
    matcher = Matcher(end_events=found.end)
    matcher.add_pattern(text)
    matcher.set_guard(1, Monitor(constraint_set))
    return matcher


def models() -> Iterator[tuple[str, Callable[[], WorkflowModel], str]]:
    """Yield the models: name, reader, and a pattern over the model."""
    for name, tree in (("30 tasks, 3 levels", nested()), ("12 branches of 3 tasks", wide())):
        made = WorkflowModel(name=name, format=ModelFormat.TREE, source=tree)
        pattern = PATTERN if name.startswith("30") else "PATTERN p EVENT SEQ(B0_0 a, B3_1 b, B11_2 c)"
        yield name, partial(_given, made), pattern
    order = WorkflowModel(name="order", format=ModelFormat.TREE, source=order_fulfilment())
    yield "order workflow", partial(_given, order), QUERIES["EP1"].text
    for path in sorted(SHARED.glob("pm4py/*.*")):
        yield path.name, partial(_read, path), ""


def main() -> None:
    """Print one line for each model."""
    if not SHARED.is_dir():
        print(f"{SHARED} is absent: only the models made here")
    guarded(compile_workflow(WorkflowModel(name="warm", format=ModelFormat.TREE, source=order_fulfilment())), PATTERN)
    print(f"{'model':28} {'read':>7} {'compile':>8} {'guards':>7}  events  states  constraints  method")
    for name, read, pattern in models():
        read_s, model = timed(read)
        try:
            compile_s, compiled = timed(partial(compile_workflow, model))
        except UnsoundWorkflow as refusal:
            print(f"{name:28} {read_s:6.3f}s refused: {refusal.message}")
            continue
        text = pattern or _pattern_over(compiled)
        guard_s, _ = timed(partial(guarded, compiled, text))
        found = compiled.extraction
        states = "-" if compiled.automaton is None else f"{len(compiled.automaton):,}"
        print(
            f"{name:28} {read_s:6.3f}s {compile_s:7.3f}s {guard_s:6.3f}s  {len(found.events):6}  {states:>6}  "
            f"{len(found.constraints):11,}  {found.method.value}"
        )
        sys.stdout.flush()


def _given(model: WorkflowModel) -> WorkflowModel:
    return model


def _read(path: Path) -> WorkflowModel:
    return read_model(path.read_bytes(), ReadOptions())


def _pattern_over(compiled: CompiledWorkflow) -> str:
    first, *_, last = compiled.extraction.events
    return f"PATTERN p EVENT SEQ(`{first}` a, `{last}` b)"


if __name__ == "__main__":
    main()
