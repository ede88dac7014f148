"""Experiments of the parameterised group-by (its specification, section 5).

Index methods: the IMP index against a hash index of one attribute and of several, for the three examples and two
windows; three attributes with 2,048 uniform values. Tuning: three stages of questions, with and without moves after the
first. Search: configurations that EPrune and RGreedy cost, and how often heuristics miss the optimum.

``scripts/literature bench question_index [--quick]``
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from aggregates.asking import AskedValue, HeldWindow, Question, QuestionIndex
from aggregates.asking.choosing import Choice, Problem, eprune, local_search, polished
from aggregates.asking.costs import MEASURED, CostModel
from aggregates.asking.ring import EventColumns, EventRing
from aggregates.asking.tuning import most_bits
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
    zipf,
)
from literature.asking.greedy import by_coverage, by_weight, hybrid, rgreedy
from literature.asking.workloads import Frequencies

ATTRIBUTES, VALUES = 3, 2_048
NAMES = ("a", "b", "c")
HEURISTICS: dict[str, Callable[[Problem], Choice]] = {
    "OWL": lambda problem: rgreedy(problem, by_weight(problem), "owl"),
    "PCL": lambda problem: rgreedy(problem, by_coverage(problem, is_extended=False), "pcl"),
    "Hybrid": hybrid,
    "polished": lambda problem: polished(problem, hybrid(problem, is_extended=True)),
    "local": local_search,
}
MISSED = 1.0005  # times the optimum
TURN = 50  # questions that an index answers before the next index does


def asked(frequencies: Frequencies, count: int, seed: int) -> Iterator[dict[int, int]]:
    """Questions as codes by attribute."""
    rng = np.random.default_rng(seed)
    patterns = rng.choice(list(frequencies), count, p=list(frequencies.values()))
    for pattern in patterns.tolist():
        yield {one: int(rng.integers(0, VALUES)) for one in range(ATTRIBUTES) if pattern >> one & 1}


def measured(
    indexes: Sequence[FixedIndex], frequencies: Frequencies, rows: int, count: int
) -> list[tuple[float, float]]:
    """The share of the window that a question compares, and the thread seconds of questions with as many events.

    Indexes take the same questions and events in turns of a few, so that a busy machine slows all of them down.
    """
    rng = np.random.default_rng(1)
    held = rng.integers(0, VALUES, (rows, ATTRIBUTES)).astype(np.int32)
    for index in indexes:
        index.insert(held, rows)
    compared, seconds, questions = [0] * len(indexes), [0.0] * len(indexes), [*asked(frequencies, count, 2)]
    for first in range(0, count, TURN):
        some = questions[first : first + TURN]
        arrived = rng.integers(0, VALUES, (len(some), ATTRIBUTES)).astype(np.int32)
        for place, index in enumerate(indexes):
            begin = time.thread_time()
            compared[place] += sum(index.find(where).compared for where in some)
            index.insert(arrived, rows)
            seconds[place] += time.thread_time() - begin
    return [(work / count / rows, spent) for work, spent in zip(compared, seconds, strict=True)]


def index_methods(windows: tuple[int, ...], count: int) -> None:
    """Print the share of the window that a question compares, and the time of the best method to others.

    A hash index that cannot be used scans the events in order, or follows the chains of all its partitions.
    """
    print(
        "| example, window | IMP | 1-Attr-Hash | M-Attr-Hash | measured costs | its time, to 1- and M-Attr | chains "
        "| bits of a service | its time, to 1- and M-Attr |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for example, frequencies in EXAMPLES.items():
        for rows in windows:
            hashes = hash_of_one(frequencies, ATTRIBUTES, rows), hash_of_all(frequencies, ATTRIBUTES)
            methods = (
                imp(frequencies, ATTRIBUTES, rows),
                *hashes,
                imp(frequencies, ATTRIBUTES, rows, is_measured=True),
                imp(frequencies, ATTRIBUTES, rows, is_measured=True, bits=most_bits(rows)),
                *(FixedIndex(index.bits) for index in hashes),
            )
            found = measured(methods, frequencies, rows, count)
            shares = (f"{share:.4f} {index.bits}" for index, (share, _) in zip(methods[:4], found, strict=False))
            _, one, several, ours, narrow, *chained = (seconds for _, seconds in found)
            times = f"{ours / count * 1e6:.0f} us, {ours / one:.2f}, {ours / several:.2f}"
            print(f"| {example}, {rows:,} | {' | '.join(shares)} | {times} |", end=" ")
            print(f"{', '.join(f'{ours / other:.2f}' for other in chained)} | {methods[4].bits} |", end=" ")
            print(f"{narrow / one:.2f}, {narrow / several:.2f} |")


def stages(rows: int, count: int, model: CostModel) -> None:
    """Print the time of three stages of questions, with moves and without moves after the first stage.

    The indexes take the same questions and events in turns.
    """
    window, rng = HeldWindow(attributes=NAMES, measures=(), span_us=rows), np.random.default_rng(3)
    tuned, now = QuestionIndex(window, model=model), rows
    tuned.insert(np.arange(rows), {name: rng.integers(0, VALUES, rows) for name in NAMES})
    spent: dict[str, list[float]] = {}
    indexes = {"tuned": tuned}
    for number, example in enumerate((2, 1, 3)):
        if number == 1:
            indexes["not tuned"] = frozen(tuned, window, model)
        questions = [
            Question(where={NAMES[one]: code for one, code in where.items()}, values={"n": AskedValue("count")})
            for where in asked(EXAMPLES[example], count, example)
        ]
        for first in range(0, count, TURN):
            arrived = {name: rng.integers(0, VALUES, TURN) for name in NAMES}
            for name, index in indexes.items():
                begin = time.thread_time()
                index.insert(np.arange(now, now + TURN), arrived)
                for question in questions[first : first + TURN]:
                    index.ask(question)
                spent.setdefault(name, [0.0] * 3)[number] += time.thread_time() - begin
            now += TURN
    print("with scans:" if model.scanning < np.inf else "without scans:", end=" ")
    for name, index in indexes.items():
        parts = [first or tuned_first for first, tuned_first in zip(spent[name], spent["tuned"], strict=True)]
        shown, explained = ", ".join(f"{part:.2f} s" for part in parts), index.explain()
        print(f"{name}: {shown}; {explained['migrations']} moves, {explained['configuration']}", end="; ")
    print(f"tuned takes {sum(spent['tuned']) / sum(parts):.2f} of the time")


def moving(rows: int) -> None:
    """Print the time of moving all events of a window to another configuration."""
    ring, rng = EventRing(ATTRIBUTES, 0), np.random.default_rng(4)
    codes = rng.integers(0, VALUES, (rows, ATTRIBUTES)).astype(np.int32)
    ring.append(EventColumns(np.arange(rows), codes, np.zeros((0, rows))))
    for bits in ((5, 5, 4), (7, 0, 6)):
        begin = time.thread_time()
        ring.begin_move(bits)
        ring.move(ring.unmoved)
        print(f"moving {rows:,} events to {bits}: {(time.thread_time() - begin) * 1e3:.0f} ms")


def frozen(index: QuestionIndex, window: HeldWindow, model: CostModel) -> QuestionIndex:
    """The same index with a configuration that stays."""
    made = QuestionIndex(window, model=model, is_tuned=False)
    made.load(*index.dump())
    return made


def search(attributes: int, rows: int) -> None:
    """Print the work of EPrune and RGreedy, and the cost of what heuristics find."""
    print(f"| {attributes} attributes | EPrune | {' | '.join(HEURISTICS)} |\n|---|---|{'---|' * len(HEURISTICS)}")
    deviations = [2.0**exponent for exponent in range(1, attributes)]
    named = {f"layered, {int(one)}": layered(attributes, one) for one in deviations}
    named |= {f"permuted, {int(one)}": permuted(layered(attributes, one), attributes, 5) for one in deviations}
    named |= {f"Zipf, {alpha}": zipf(attributes, alpha) for alpha in (0.7, 0.8, 0.9, 1.0, 1.1)}
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
    index_methods((20_000, 40_000) if is_quick else (100_000, 200_000, 1_000_000), 200 if is_quick else 2_000)
    rows, count = (50_000, 1_000) if is_quick else (200_000, 5_000)
    stages(rows, count, MEASURED)
    stages(rows, count, replace(MEASURED, scanning=np.inf))
    moving(rows)
    search(5 if is_quick else 8, 1_000_000)


if __name__ == "__main__":
    main()
