"""Selects the mined constraints that do not follow from others.

Each constraint is examined in turn, and dropped if it follows from the constraints that are left. So that no
information is lost, these must have, in total, at most as many violations as the dropped constraint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Violations = NDArray[np.float64]
Mask = NDArray[np.bool_]

_RULES = ("response", "precedence", "alternate response", "alternate precedence", "chain response", "chain precedence")


@dataclass(frozen=True, slots=True, eq=False)
class FoundConstraints:
    """The mined constraints of one kind, for all types or pairs of types.

    ``violations``, float64 (types,) or (types, types), is infinite for a constraint that was not found or has been
    dropped. The array changes in place.
    """

    violations: Violations

    @classmethod
    def of(cls, broken: NDArray[np.int64], mask: Mask) -> FoundConstraints:
        return cls(np.where(mask, broken.astype(np.float64), np.inf))

    @property
    def mask(self) -> Mask:
        return np.isfinite(self.violations)

    def leave_out(self, least: Violations) -> None:
        """Drop each constraint that has at least as many violations as ``least`` has for it.

        ``least`` is the total violations of the constraints that imply the constraint, or infinity if none do.
        """
        self.violations[self.mask & (least <= self.violations)] = np.inf


def useful_among(constraints: Mapping[str, FoundConstraints]) -> Mapping[str, Mask]:
    """Return for each kind of constraint a mask of the constraints that do not follow from the rest."""
    ends, always = constraints["end"].violations, constraints["existence"].violations
    width = len(ends)
    closure = _Closure(
        prior=np.minimum.reduce(
            [
                constraints["prior"].violations,
                np.broadcast_to(ends[None, :], (width, width)),
                _symmetric(constraints["exclusive"]),
            ]
        ),
        require=np.minimum(constraints["require"].violations, always[None, :]),
    )
    if "response" in constraints:
        _reduce_rules(constraints, closure)
        for kind in ("init", "last"):
            constraints["existence"].leave_out(constraints[kind].violations)
    _reduce_exclusive(constraints, closure.require)
    _reduce_require(constraints)
    _reduce_prior(constraints, closure.require)
    return {kind: of_kind.mask for kind, of_kind in constraints.items()}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Closure:
    """The least number of violations by which each order and each requirement holds, mined or implied by other kinds.

    ``prior`` includes the orders that follow from end events and exclusions. ``require`` includes the requirements of
    types that occur in every trace.
    """

    prior: Violations
    require: Violations


def _symmetric(exclusive: FoundConstraints) -> Violations:
    return np.minimum(exclusive.violations, exclusive.violations.T)


def _reduce_rules(constraints: Mapping[str, FoundConstraints], closure: _Closure) -> None:
    once = constraints["prior"].violations.diagonal()
    constraints["last"].leave_out(constraints["existence"].violations + constraints["end"].violations)
    for kind, axis, alternating in (("response", 0, once[:, None]), ("precedence", 1, once[None, :])):
        plain, alternate, chain = (constraints[f"{strictness}{kind}"] for strictness in ("", "alternate ", "chain "))
        required = closure.require if axis == 0 else closure.require.T
        bound = constraints["last"].violations[None, :] if axis == 0 else constraints["init"].violations[:, None]
        alternate.leave_out(np.minimum(chain.violations, plain.violations + alternating))
        plain.leave_out(np.minimum.reduce([alternate.violations, chain.violations, required + closure.prior]))
        plain.leave_out(np.broadcast_to(bound, plain.violations.shape))


def _reduce_exclusive(constraints: Mapping[str, FoundConstraints], require: Violations) -> None:
    """Drop exclusions that follow from other constraints.

    Two end events exclude each other. A type that requires one of two exclusive types excludes the other one.
    """
    exclusive, ends = constraints["exclusive"], constraints["end"].violations
    exclusive.leave_out(ends[:, None] + ends[None, :])
    pair_violations = _symmetric(exclusive)
    for first, second in np.argwhere(exclusive.mask):
        violations = pair_violations[first, second]
        pair_violations[first, second] = pair_violations[second, first] = np.inf
        least = min(
            np.min(require[first] + pair_violations[:, second]), np.min(require[second] + pair_violations[:, first])
        )
        if least <= violations:
            exclusive.violations[first, second] = np.inf
        else:
            pair_violations[first, second] = pair_violations[second, first] = violations


def _reduce_require(constraints: Mapping[str, FoundConstraints]) -> None:
    require = constraints["require"]
    require.leave_out(np.broadcast_to(constraints["existence"].violations[None, :], require.violations.shape))
    for kind in ("init", "last"):
        if kind in constraints:
            require.leave_out(np.broadcast_to(constraints[kind].violations[None, :], require.violations.shape))
    ruled = np.full(require.violations.shape, np.inf)
    for kind in _RULES:
        if kind in constraints:
            rule_violations = constraints[kind].violations
            ruled = np.minimum(ruled, rule_violations if kind.endswith("response") else rule_violations.T)
    require.leave_out(ruled)
    pair_violations = np.minimum(require.violations, ruled)
    for first, second in np.argwhere(require.mask):
        violations = pair_violations[first, second]
        pair_violations[first, second] = np.inf
        if np.min(pair_violations[first] + pair_violations[:, second]) <= violations:
            require.violations[first, second] = np.inf
        else:
            pair_violations[first, second] = violations


def _reduce_prior(constraints: Mapping[str, FoundConstraints], require: Violations) -> None:
    """Drop orders that follow from other constraints.

    No event follows an end event. Types that never occur together are ordered both ways. Order is transitive over a
    type that one of the two types requires.
    """
    prior, ends = constraints["prior"], constraints["end"].violations
    derived = np.minimum(np.broadcast_to(ends[None, :], prior.violations.shape), _symmetric(constraints["exclusive"]))
    prior.leave_out(derived)
    pair_violations = np.minimum(prior.violations, derived)
    np.fill_diagonal(pair_violations, np.inf)  # "at most once" for a type implies no order of other types
    for first, second in np.argwhere(prior.mask):
        if first == second:
            continue
        violations = pair_violations[first, second]
        pair_violations[first, second] = np.inf
        between = pair_violations[first] + pair_violations[:, second] + np.minimum(require[first], require[second])
        if np.min(between) <= violations:
            prior.violations[first, second] = np.inf
        else:
            pair_violations[first, second] = violations
