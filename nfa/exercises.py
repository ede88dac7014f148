"""Exercises: small runs of a matcher that compile its kernels in advance, for ``streams.compiling``.

The kernels depend on the engines that a matcher runs, on its idle timeout, and on whether its state is saved. Such
features are part of the exercise's name, so that other processes find the exercise for each combination.
``constraints.exercises`` adds guards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from nfa.guards.protocol import Guard
from nfa.lanes.layout import is_run_by_shared_engine
from nfa.matcher import Matcher
from nfa.results.batch import MatchOutput
from nfa.results.open_cases import CaseQuery
from nfa.syntax import Pattern
from streams import Event, EventBatch, Ties, texts_of
from streams.tables import MappedTable, TableForm

SHARED, RUNS, IDLE, SAVED = MATCHER_FEATURES = ("shared", "runs", "idle", "saved")
"""The features of a matcher: the engines of its patterns, an idle timeout of its traces, saved state."""

_PATTERNS: Mapping[str, tuple[str, ...]] = {
    SHARED: (
        "PATTERN exercise_open EVENT SEQ(A a, B b)",
        "PATTERN exercise_timed EVENT SEQ(A a, B b) WITHIN 9 s",
    ),
    RUNS: (
        "PATTERN exercise_waiting EVENT SEQ(A a, NEXT B b [v > a.v], NOT C)",
        "PATTERN exercise_runs EVENT SEQ(A a, NEXT B b [v > a.v], NOT C) WITHIN 9 s RETURN b.v",
        "PATTERN exercise_ranked EVENT SEQ(A a, NEXT B b [v > a.v], NOT C) WITHIN 9 s LIMIT 9 EMIT TIMEOUTS",
    ),
}
_TRACES = (  # the first trace ends, the second outlives the window, the third is open at the end
    (("A", 0), ("B", 1), ("X", 2), ("End", 3)),
    (("A", 4), ("B", 5), ("X", 20), ("Y", 21)),
    (("A", 22), ("B", 23), ("X", 24)),
)
_LAST_US, _IDLE_US = 25_000_000, 3_600_000_000


def matcher_features(patterns: Iterable[Pattern], *, ties: Ties = "log", is_idling: bool = False) -> frozenset[str]:
    """Return the features of a matcher that runs the given patterns, such as its engines.

    The feature for saved state is never included. ``is_idling`` says whether the matcher has an idle timeout. Features
    decide which kernels a process must compile.
    """
    engines = {is_run_by_shared_engine(pattern, is_log_ordered=ties == "log") for pattern in patterns}
    flags = {SHARED: True in engines, RUNS: False in engines, IDLE: is_idling}
    return frozenset(feature for feature, is_set in flags.items() if is_set)


def matching_exercise(features: Collection[str]) -> str:
    """Return the name of an exercise: a run that compiles the kernels of a matcher with these features and no guard."""
    return f"{__name__}:matching:{','.join(feature for feature in MATCHER_FEATURES if feature in features)}"


def matching(features: str) -> int:
    """Run ``play`` without a guard, and return the number of matches. ``features`` are separated by commas."""
    return play(features.split(","))


def play(features: Collection[str], guard: Guard | None = None) -> int:
    """Run a few patterns on a few traces, and return the number of matches. This calls all kernels of a matcher.

    At the end, the function advances time, ends a trace and ends the input.
    """
    _look_up()
    guards = {} if guard is None else {1: guard}
    matcher = Matcher(
        end_events=("End",),
        tracks="listed" if SAVED in features else "all",
        idle_timeout_us=_IDLE_US if IDLE in features else None,
    )
    names = [
        matcher.add_pattern(text).pattern.name
        for engine in (SHARED, RUNS)
        if engine in features
        for text in _PATTERNS[engine]
    ]
    for version, version_guard in guards.items():
        matcher.set_guard(version, version_guard)
    outputs: list[MatchOutput] = []
    for number in range(len(_TRACES)):
        events = _events(number)
        for part in (events[:2], events[2:]):
            outputs.append(matcher.process(EventBatch.from_events(part)))
            if SAVED in features:
                matcher.open_cases(CaseQuery())
                matcher = Matcher.load(matcher.dump(), guards)
    if SAVED in features and names:  # a trace still has bound events of the pattern
        matcher.remove_pattern(names[0])
    last = str(len(_TRACES) - 1)
    outputs += [matcher.pass_time(_LAST_US), matcher.end_traces([last], _LAST_US), matcher.finish()]
    return sum(len(output.matches()) for output in outputs)


def _look_up() -> None:
    form, keys = TableForm(key=("k",), columns={"k": "text"}), texts_of(["a"])
    MappedTable.of_keys(form, [keys], keys).find(keys)


def _events(trace: int) -> list[Event]:
    return [
        Event(id=f"{trace}-{second}", type=name, time_us=second * 1_000_000, key=str(trace), data={"v": second})
        for name, second in _TRACES[trace]
    ]
