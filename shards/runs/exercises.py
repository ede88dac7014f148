"""The kernels that a run calls, as exercises that compile them."""

from __future__ import annotations

from nfa import matcher_features, matching_exercise, parse_pattern
from shards.kinds import KINDS_BY_NAME
from shards.kinds.patterns import PatternKind
from shards.runs.plan import RoundPlan, Variant
from streams import ConstraintsOn, PatternOn


def run_exercises(plan: RoundPlan) -> list[str]:
    """The exercises that a run needs for its variants."""
    return sorted({one for variant in plan.variants for one in _variant_exercises(variant)})


def _variant_exercises(variant: Variant) -> set[str]:
    """The exercises that call the same kernels as a variant."""
    others = {KINDS_BY_NAME[one.kind].exercise for _, one in variant.operators if one.kind != PatternKind.name}
    routes = {(name, one.inputs[0].key) for name, one in variant.operators if one.kind == PatternKind.name}
    return (others - {""}) | {_of_place(variant, *place) for place in {(name, "") for name in variant.active} | routes}


def _of_place(variant: Variant, name: str, route: str) -> str:
    """The exercise of the patterns of a stream by a key; its constraints are about the correlation key."""
    records = [record for stream, record in variant.records if stream == name]
    texts = [record.text for record in records if isinstance(record, PatternOn) and record.route == route]
    declaration = variant.declarations[name]
    is_idling = declaration.idle_timeout is not None
    features = matcher_features(list(map(parse_pattern, texts)), ties=declaration.ties, is_idling=is_idling)
    for record in () if route else records:
        if isinstance(record, ConstraintsOn):
            from constraints import guard_features, guarded_exercise, parse_constraints  # noqa: PLC0415 - takes long

            known = parse_constraints(record.document).constraint_set
            return guarded_exercise(features | guard_features(known, ties=declaration.ties))
    return matching_exercise(features)
