"""The kernels that a trial calls, as exercises that compile them."""

from __future__ import annotations

from constraints import guard_features, guarded_exercise, parse_constraints
from nfa import matcher_features, matching_exercise, parse_pattern
from shards.trial import TrialPlan, Variant
from streams import ConstraintsOn, PatternOn, StreamOn


def trial_exercises(plan: TrialPlan) -> list[str]:
    """The exercises that a backtest needs for its variants."""
    return sorted({_variant_exercise(variant) for variant in plan.variants})


def _variant_exercise(variant: Variant) -> str:
    """The exercise that calls the same kernels as a variant."""
    patterns = [parse_pattern(record.text) for record in variant.control if isinstance(record, PatternOn)]
    (declaration,) = (record.declaration for record in variant.control if isinstance(record, StreamOn))
    features = matcher_features(patterns, ties=declaration.ties, is_idling=declaration.idle_timeout is not None)
    for record in variant.control:
        if isinstance(record, ConstraintsOn):
            known = parse_constraints(record.document).constraint_set
            return guarded_exercise(features | guard_features(known, ties=declaration.ties))
    return matching_exercise(features)
