"""A short run that calls all kernels of a matcher with a guard, so that the kernels are compiled in advance."""

from __future__ import annotations

from collections.abc import Collection

from constraints.analysing.state_count import count_states
from constraints.model import ConstraintSet, Exclusive, Prior, Settings
from constraints.monitoring.monitor import Monitor
from nfa import MATCHER_FEATURES, play
from streams import Ties

GUARD, BITS = GUARD_FEATURES = ("guard", "bits")
"""Features of a guard: numbered monitor states within the cap, bit tables beyond it."""

_CONSTRAINTS = (Exclusive("B", "L"), Prior("A", "X"))
_SETTINGS = {GUARD: Settings(), BITS: Settings(max_monitor_states=1)}  # under BITS, nearly all traces use bit tables


def guard_features(constraint_set: ConstraintSet, *, ties: Ties = "log") -> frozenset[str]:
    """Return the features of the guard of a constraint set: which kernels a process must compile for it.

    Kernels for numbered states are always needed. Kernels for bit tables are needed if the states may exceed the cap.
    """
    most = constraint_set.settings.max_monitor_states
    is_within_cap = ties == "simultaneous" or count_states(constraint_set, most) <= most
    return frozenset({GUARD} if is_within_cap else GUARD_FEATURES)


def guarded_exercise(features: Collection[str] = (*MATCHER_FEATURES, *GUARD_FEATURES)) -> str:
    """Return the name of an exercise: a run of ``guarded`` that compiles the kernels for the given features."""
    names = [feature for feature in (*MATCHER_FEATURES, *GUARD_FEATURES) if feature in features]
    return f"{__name__}:guarded:{','.join(names)}"


def guarded(features: str) -> int:
    """Run a few patterns without a guard and with each guard named in ``features``. Return the number of matches."""
    feature_names = features.split(",")
    guards = (
        Monitor(ConstraintSet.of(_CONSTRAINTS, settings=_SETTINGS[name]))
        for name in GUARD_FEATURES
        if name in feature_names
    )
    return sum(play(feature_names, guard) for guard in (None, *guards))
