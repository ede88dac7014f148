"""Mines constraints from a past log.

Each constraint is checked by its definition on all traces. Support and confidence are those of association rules (R.
Agrawal, R. Srikant, Fast algorithms for mining association rules, 1994), counted per trace as for declarative process
models (C. Di Ciccio, M. Mecella, On the discovery of declarative control flows for artful processes, 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from constraints import (
    Clause,
    ConstraintSet,
    End,
    Exclusive,
    Part,
    Prior,
    Require,
    Rule,
    find_clash,
    parse_constraints,
    to_document,
)
from workflows.discovery.counting import Tally, count_plain, count_rules
from workflows.discovery.log import Counts, EncodedLog
from workflows.discovery.mined import LogSummary, MinedConstraint, MinedConstraints, MiningSettings
from workflows.discovery.redundancy import FoundConstraints, useful_among

_ROUNDING = 1e-12

_MAKERS: Mapping[str, Callable[[str, str], Part]] = {
    "prior": Prior,
    "exclusive": Exclusive,
    "require": Require,
    "existence": lambda name, _: Clause(frozenset(), name),
    "end": lambda name, _: End(name),
}


def mine(
    traces: Iterable[Sequence[str]], settings: MiningSettings | None = None, log: LogSummary | None = None
) -> MinedConstraints:
    """Find the constraints that past traces keep. Each trace is the list of its event types in order.

    ``log`` gives the name and time span of the log. Its numbers of traces and events are counted again.
    """
    thresholds = settings or MiningSettings()
    encoded = EncodedLog.of(traces)
    summary = replace(log or LogSummary(), traces=encoded.traces, events=encoded.events)
    tallies = dict(count_plain(encoded))
    if thresholds.has_rules:
        tallies.update(count_rules(encoded))
    masks = _within(tallies, encoded, thresholds)
    constraints = {kind: FoundConstraints.of(tally.broken, masks[kind]) for kind, tally in tallies.items()}
    useful = useful_among(constraints)
    useful_constraints = tuple(_listed(encoded, tallies, useful))
    useful_constraints, withdrawn = (
        (useful_constraints, ()) if thresholds.min_confidence == 1 else _consistent(useful_constraints)
    )
    everything = tuple(_listed(encoded, tallies, masks))
    return MinedConstraints(
        log=summary,
        settings=thresholds,
        all=everything,
        entailed=tuple(_entailed(encoded, tallies, everything)),
        useful=useful_constraints,
        withdrawn=withdrawn,
    )


def _within(tallies: Mapping[str, Tally], log: EncodedLog, settings: MiningSettings) -> Mapping[str, NDArray[np.bool_]]:
    least = settings.least_traces(log.traces)
    masks = {}
    for kind, tally in tallies.items():
        kept = tally.tested - tally.broken
        is_found = (tally.tested > 0) & (tally.tested >= least - _ROUNDING)
        is_found &= kept >= (settings.min_confidence - _ROUNDING) * tally.tested
        if is_found.ndim == 2 and kind != "prior":
            np.fill_diagonal(is_found, val=False)
        masks[kind] = is_found
    having = tallies["end"].tested
    masks["exclusive"] = np.triu(masks["exclusive"]) & _is_no_chance(
        tallies["exclusive"].broken, np.outer(having, having), log.traces, settings.min_expected
    )
    masks["require"] &= masks["existence"][None, :] | _is_no_chance(
        tallies["require"].broken, np.outer(having, log.traces - having), log.traces, settings.min_expected
    )
    return masks


def _is_no_chance(broken: Counts, products: Counts, traces: int, min_expected: float) -> NDArray[np.bool_]:
    """Return a mask of the constraints with so few violations that they probably do not hold by chance.

    For ``e`` violations that would be expected if types were independent, and ``k`` observed violations, the
    probability of ``k`` or fewer is at most ``exp(-(e - k + k ln(k / e)))`` (H. Chernoff, A measure of asymptotic
    efficiency, 1952; W. Hoeffding, Probability inequalities for sums of bounded random variables, 1963, also for draws
    without replacement). The exponent in brackets must be at least ``min_expected``. Without violations it is ``e``.
    ``broken`` are the observed violations. ``products`` are the expected violations times ``traces``.
    """
    if min_expected <= 0:
        return np.ones(broken.shape, np.bool_)
    expected = products / max(1, traces)
    ratio = np.divide(broken, expected, out=np.ones(broken.shape), where=expected > 0)
    exponent = expected - broken + broken * np.log(np.maximum(ratio, np.finfo(float).tiny))
    is_unlikely: NDArray[np.bool_] = (broken < expected) & (exponent >= min_expected - _ROUNDING)
    return is_unlikely


def _listed(
    log: EncodedLog, tallies: Mapping[str, Tally], masks: Mapping[str, NDArray[np.bool_]]
) -> Iterator[MinedConstraint]:
    for kind, mask in masks.items():
        tally = tallies[kind]
        make = _MAKERS.get(kind, _rule(kind, mask.ndim))
        for place in zip(*np.nonzero(mask), strict=True):
            part = make(log.types[place[0]], log.types[place[-1]])
            yield MinedConstraint(part=part, support=int(tally.tested[place]), violations=int(tally.broken[place]))


def _entailed(
    log: EncodedLog, tallies: Mapping[str, Tally], constraints: Sequence[MinedConstraint]
) -> Iterator[MinedConstraint]:
    code_of = {name: code for code, name in enumerate(log.types)}
    given_parts = {mined.part for mined in constraints}
    parts = (part for mined in constraints if isinstance(mined.part, Rule) for part in _with_what_follows(mined.part))
    for part in dict.fromkeys(parts):
        if part not in given_parts:
            tally, place = tallies[part.kind], tuple(code_of[name] for name in part.names)
            yield MinedConstraint(part=part, support=int(tally.tested[place]), violations=int(tally.broken[place]))


def _rule(kind: str, width: int) -> Callable[[str, str], Part]:
    return lambda first, second: Rule(kind, (first, second)[:width])


def _consistent(
    constraints: Sequence[MinedConstraint],
) -> tuple[tuple[MinedConstraint, ...], tuple[MinedConstraint, ...]]:
    """Return the constraints that some trace can satisfy together, and the constraints withdrawn for this purpose.

    Of each set of constraints that clash, the one with the least confidence and support is withdrawn.
    """
    parts_of = {mined: _with_what_follows(mined.part) for mined in constraints}
    withdrawn = []
    while (clash := find_clash(ConstraintSet.of(part for parts in parts_of.values() for part in parts))) is not None:
        clashing = set(clash.constraints)
        candidates = (mined for mined, parts in parts_of.items() if not clashing.isdisjoint(parts))
        weakest = min(candidates, key=lambda mined: (mined.confidence, mined.support))
        withdrawn.append(weakest)
        del parts_of[weakest]
    return tuple(parts_of), tuple(withdrawn)


def _with_what_follows(part: Part) -> tuple[Part, ...]:
    if not isinstance(part, Rule):
        return (part,)
    return parse_constraints(to_document(ConstraintSet.of((part,)))).constraint_set.parts
