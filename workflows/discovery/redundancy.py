"""Selects the mined constraints that do not follow from the others.

Constraints are examined one after the other, and dropped if they follow from the remaining constraints. The constraints
that imply a dropped one must be as reliable: the sum of their violations is at most its own number.
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
    """The constraints of one kind by their names.

    ``violations`` are float64 (types,) or (types, types), infinite if a constraint was not found. They change in place
    while constraints are left out.
    """

    violations: Violations

    @classmethod
    def of(cls, broken: NDArray[np.int64], mask: Mask) -> FoundConstraints:
        return cls(np.where(mask, broken.astype(np.float64), np.inf))

    @property
    def mask(self) -> Mask:
        return np.isfinite(self.violations)

    def leave_out(self, least: Violations) -> None:
        """Leave out the constraints that follow from others with at most ``least`` violations in total."""
        self.violations[self.mask & (least <= self.violations)] = np.inf


def useful_among(found: Mapping[str, FoundConstraints]) -> Mapping[str, Mask]:
    """Masks of the constraints of each kind that do not follow from the rest."""
    ends, always = found["end"].violations, found["existence"].violations
    width = len(ends)
    closure = _Closure(
        prior=np.minimum.reduce(
            [found["prior"].violations, np.broadcast_to(ends[None, :], (width, width)), _symmetric(found["exclusive"])]
        ),
        require=np.minimum(found["require"].violations, always[None, :]),
    )
    if "response" in found:
        _reduce_rules(found, closure)
        for kind in ("init", "last"):
            found["existence"].leave_out(found[kind].violations)
    _reduce_exclusive(found, closure.require)
    _reduce_require(found)
    _reduce_prior(found, closure.require)
    return {kind: one.mask for kind, one in found.items()}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Closure:
    """Orders and requirements, with the consequences of ends, exclusions and existence."""

    prior: Violations
    require: Violations


def _symmetric(exclusive: FoundConstraints) -> Violations:
    return np.minimum(exclusive.violations, exclusive.violations.T)


def _reduce_rules(found: Mapping[str, FoundConstraints], closure: _Closure) -> None:
    """Leave out rules that follow from order and occurrence, or from stricter rules."""
    once = found["prior"].violations.diagonal()
    found["last"].leave_out(found["existence"].violations + found["end"].violations)
    for kind, one, alternating in (("response", 0, once[:, None]), ("precedence", 1, once[None, :])):
        plain, alternate, chain = (found[f"{strictness}{kind}"] for strictness in ("", "alternate ", "chain "))
        required = closure.require if one == 0 else closure.require.T
        bound = found["last"].violations[None, :] if one == 0 else found["init"].violations[:, None]
        alternate.leave_out(np.minimum(chain.violations, plain.violations + alternating))
        plain.leave_out(np.minimum.reduce([alternate.violations, chain.violations, required + closure.prior]))
        plain.leave_out(np.broadcast_to(bound, plain.violations.shape))


def _reduce_exclusive(found: Mapping[str, FoundConstraints], require: Violations) -> None:
    """Leave out exclusions that follow from other constraints.

    Two end events exclude each other. A type that requires one of two exclusive types excludes the other.
    """
    exclusive, ends = found["exclusive"], found["end"].violations
    exclusive.leave_out(ends[:, None] + ends[None, :])
    both = _symmetric(exclusive)
    for first, second in np.argwhere(exclusive.mask):
        own = both[first, second]
        both[first, second] = both[second, first] = np.inf
        least = min(np.min(require[first] + both[:, second]), np.min(require[second] + both[:, first]))
        if least <= own:
            exclusive.violations[first, second] = np.inf
        else:
            both[first, second] = both[second, first] = own


def _reduce_require(found: Mapping[str, FoundConstraints]) -> None:
    """Leave out requirements that follow from types that always occur, other requirements, responses or precedences."""
    require = found["require"]
    require.leave_out(np.broadcast_to(found["existence"].violations[None, :], require.violations.shape))
    for kind in ("init", "last"):
        if kind in found:
            require.leave_out(np.broadcast_to(found[kind].violations[None, :], require.violations.shape))
    ruled = np.full(require.violations.shape, np.inf)
    for kind in _RULES:
        if kind in found:
            one = found[kind].violations
            ruled = np.minimum(ruled, one if kind.endswith("response") else one.T)
    require.leave_out(ruled)
    known = np.minimum(require.violations, ruled)
    for first, second in np.argwhere(require.mask):
        own = known[first, second]
        known[first, second] = np.inf
        if np.min(known[first] + known[:, second]) <= own:
            require.violations[first, second] = np.inf
        else:
            known[first, second] = own


def _reduce_prior(found: Mapping[str, FoundConstraints], require: Violations) -> None:
    """Leave out orders that follow from other constraints.

    Nothing comes after an end; types that never meet are in order; order is transitive over required types.
    """
    prior, ends = found["prior"], found["end"].violations
    derived = np.minimum(np.broadcast_to(ends[None, :], prior.violations.shape), _symmetric(found["exclusive"]))
    prior.leave_out(derived)
    known = np.minimum(prior.violations, derived)
    np.fill_diagonal(known, np.inf)  # "at most one" of a type orders no other types
    for first, second in np.argwhere(prior.mask):
        if first == second:
            continue
        own = known[first, second]
        known[first, second] = np.inf
        between = known[first] + known[:, second] + np.minimum(require[first], require[second])
        if np.min(between) <= own:
            prior.violations[first, second] = np.inf
        else:
            known[first, second] = own
