"""Experiments of the parameterised group-by (its specification, section 5).

Index methods: the IMP index against a hash index of one attribute and of several, for the three examples and two
windows; three attributes with 2,048 uniform values. Tuning: three stages of questions, with and without moves after the
first. Search: configurations that EPrune and RGreedy cost, and how often heuristics miss the optimum.

``scripts/literature bench question_index [--quick]``
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from aggregates.asking import AskedValue, HeldWindow, Question, QuestionIndex
from aggregates.asking.choosing import Choice, Problem, by_coverage, by_weight, eprune, hybrid, polished, rgreedy
from literature.asking import (
    EXAMPLES,
    FixedIndex,
    extreme,
    hash_of_all,
    hash_of_one,
    imp,
    layered,
    permuted,
    problem_of,
)
from literature.asking.workloads import Frequencies

ATTRIBUTES, VALUES = 3, 2_048
NAMES = ("a", "b", "c")
HEURISTICS: dict[str, Callable[[Problem], Choice]] = {
    "OWL": lambda problem: rgreedy(problem, by_weight(problem), "owl"),
    "PCL": lambda problem: rgreedy(problem, by_coverage(problem, is_extended=False), "pcl"),
    "Hybrid": hybrid,
    "polished": lambda problem: polished(problem, hybrid(problem, is_extended=True)),
}
MISSED = 1.0005  # times the optimum


def asked(frequencies: Frequencies, count: int, seed: int) -> Iterator[dict[int, int]]:
    """Questions as codes by attribute."""
    rng = np.random.default_rng(seed)
    patterns = rng.choice(list(frequencies), count, p=list(frequencies.values()))
    for pattern in patterns.tolist():
        yield {one: int(rng.integers(0, VALUES)) for one in range(ATTRIBUTES) if pattern >> one & 1}


def measured(index: FixedIndex, frequencies: Frequencies, rows: int, count: int) -> tuple[float, float]:
    """The share of the window that a question compares, and the thread seconds of questions with as many events."""
    rng, compared, seconds = np.random.default_rng(1), 0, 0.0
    index.insert(rng.integers(0, VALUES, (rows, ATTRIBUTES)).astype(np.int32), rows)
    for where in asked(frequencies, count, 2):
        begin = time.thread_time()
        compared += index.find(where).compared
        seconds += time.thread_time() - begin
    arrived = rng.integers(0, VALUES, (count, ATTRIBUTES)).astype(np.int32)
    begin = time.thread_time()
    index.insert(arrived, rows)
    return compared / count / rows, seconds + time.thread_time() - begin


def index_methods(windows: tuple[int, ...], count: int) -> None:
    """Print the share of the window that a question compares, and the time of the best method to others."""
    print("| example, window | IMP | 1-Attr-Hash | M-Attr-Hash | measured costs | its time, to 1-Attr, to M-Attr |")
    print("|---|---|---|---|---|---|")
    for example, frequencies in EXAMPLES.items():
        for rows in windows:
            methods = (
                imp(frequencies, ATTRIBUTES, rows),
                hash_of_one(frequencies, ATTRIBUTES, rows),
                hash_of_all(frequencies, ATTRIBUTES),
                imp(frequencies, ATTRIBUTES, rows, is_measured=True),
            )
            found = [measured(index, frequencies, rows, count) for index in methods]
            shares = " | ".join(f"{share:.4f} {index.bits}" for index, (share, _) in zip(methods, found, strict=True))
            (_, _), (_, one), (_, several), (_, ours) = found
            times = f"{ours / count * 1e6:.0f} us, {ours / one:.2f}, {ours / several:.2f}"
            print(f"| {example}, {rows:,} | {shares} | {times} |")


def stages(rows: int, count: int) -> None:
    """Print the time of three stages of questions, with and without moves after the first stage."""
    window = HeldWindow(attributes=NAMES, measures=(), span_us=rows)
    totals = {}
    for is_tuned in (True, False):
        index, rng = QuestionIndex(window), np.random.default_rng(3)
        index.insert(np.arange(rows), {name: rng.integers(0, VALUES, rows) for name in NAMES})
        seconds, now = [], rows
        for number, example in enumerate((2, 1, 3)):
            if number == 1 and not is_tuned:
                index = frozen(index, window)
            begin = time.thread_time()
            for place, where in enumerate(asked(EXAMPLES[example], count, example)):
                if place % 100 == 0:
                    index.insert(np.arange(now, now + 100), {name: rng.integers(0, VALUES, 100) for name in NAMES})
                    now += 100
                question = Question(
                    where={NAMES[one]: code for one, code in where.items()}, values={"n": AskedValue("count")}
                )
                index.ask(question)
            seconds.append(time.thread_time() - begin)
        explained = index.explain()
        totals[is_tuned] = sum(seconds)
        shown = ", ".join(f"{part:.2f} s" for part in seconds)
        name = "tuned" if is_tuned else "not tuned"
        print(f"{name}: {shown}; {explained['migrations']} moves, {explained['configuration']}")
    print(f"tuned takes {totals[True] / totals[False]:.2f} of the time")


def frozen(index: QuestionIndex, window: HeldWindow) -> QuestionIndex:
    """The same index with a configuration that stays."""
    made = QuestionIndex(window, is_tuned=False)
    made.load(*index.dump())
    return made


def search(attributes: int, rows: int) -> None:
    """Print the work of EPrune and RGreedy, and the cost of what heuristics find."""
    print(f"| {attributes} attributes | EPrune | {' | '.join(HEURISTICS)} |\n|---|---|{'---|' * len(HEURISTICS)}")
    deviations = [2.0**exponent for exponent in range(1, attributes)]
    named = {f"layered, {int(one)}": layered(attributes, one) for one in deviations}
    named |= {f"permuted, {int(one)}": permuted(layered(attributes, one), attributes, 5) for one in deviations}
    missed = dict.fromkeys(HEURISTICS, 0)
    for name, frequencies in (named | dict(extreme(attributes))).items():
        problem = problem_of(frequencies, attributes, rows=rows, events=10.0)
        begin = time.thread_time()
        best = eprune(problem)
        cells = [f"{best.evaluated:,} in {time.thread_time() - begin:.2f} s"]
        for heuristic, choose in HEURISTICS.items():
            begin = time.thread_time()
            found = choose(problem)
            missed[heuristic] += found.cost > best.cost * MISSED
            cells.append(f"{found.cost / best.cost:.3f}, {found.evaluated:,} in {time.thread_time() - begin:.2f} s")
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"missed of {len(named) + 4}: {missed}")


def main() -> None:
    """Print all tables."""
    is_quick = "--quick" in sys.argv
    index_methods((20_000, 40_000) if is_quick else (100_000, 200_000), 200 if is_quick else 2_000)
    stages(50_000 if is_quick else 200_000, 1_000 if is_quick else 5_000)
    search(5 if is_quick else 8, 1_000_000)


if __name__ == "__main__":
    main()
