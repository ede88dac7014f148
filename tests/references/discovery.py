"""The executable meaning of mining: every kind of constraint by its definition, one trace at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from workflows.discovery.mined import MiningSettings

Trace: TypeAlias = Sequence[str]
Name: TypeAlias = tuple[str, ...]
"""Kind, then event types."""


def is_broken(kind: str, trace: Trace, first: str, second: str = "") -> bool:
    """Whether a finished trace breaks a constraint."""
    return not _HOLDS[kind](trace, first, second)


def mine_slowly(traces: Sequence[Trace], settings: MiningSettings) -> dict[Name, tuple[int, int]]:
    """All constraints within the thresholds: support and violations by kind and types."""
    types = sorted({name for trace in traces for name in trace})
    found = {}
    for kind in _HOLDS if settings.has_rules else _PLAIN:
        for names in product(types, repeat=1 if kind in _SINGLE else 2):
            if (kind != "prior" and len(set(names)) < len(names)) or (kind == "exclusive" and names[0] > names[1]):
                continue
            support, violations = _counts(kind, traces, names)
            if not support or support < settings.least_traces(len(traces)) - 1e-9:
                continue
            if (support - violations) / support < settings.min_confidence - 1e-9:
                continue
            if not _may_be_chance(kind, traces, names, violations, settings.min_expected):
                found[(kind, *names)] = support, violations
    always = {names[1] for names in found if names[0] == "existence"}
    for first, second in product(types, always):  # types that always occur are required, regardless of chance
        support, violations = _counts("require", traces, (first, second))
        is_frequent = support >= settings.least_traces(len(traces)) - 1e-9
        if first != second and is_frequent and 1 - violations / support >= settings.min_confidence - 1e-9:
            found["require", first, second] = support, violations
    return found


def _counts(kind: str, traces: Sequence[Trace], names: Name) -> tuple[int, int]:
    violations = sum(is_broken(kind, trace, *names) for trace in traces)
    if kind == "exclusive":
        return min(sum(name in trace for trace in traces) for name in names), violations
    return sum(_is_tested(kind, trace, names) for trace in traces), violations


def _is_tested(kind: str, trace: Trace, names: Name) -> bool:
    if kind in ("existence", "init", "last"):
        return True
    if kind == "prior":
        return set(names) <= set(trace)
    return names[-1 if kind.endswith("precedence") else 0] in trace


def _may_be_chance(kind: str, traces: Sequence[Trace], names: Name, violations: int, min_expected: float) -> bool:
    if kind not in ("exclusive", "require") or min_expected == 0:
        return False
    shares = [sum(name in trace for trace in traces) / len(traces) for name in names]
    expected = len(traces) * shares[0] * (shares[1] if kind == "exclusive" else 1 - shares[1])
    if violations >= expected:
        return True
    surprise = expected - violations + (violations * math.log(violations / expected) if violations else 0)
    return surprise < min_expected - 1e-9


def _responds(trace: Trace, first: str, second: str, *, is_alternate: bool = False) -> bool:
    """Whether every ``first`` is followed by a ``second``; if ``alternate``, before the next ``first``."""
    for place, name in enumerate(trace):
        if name == first:
            rest = list(trace[place + 1 :])
            until = rest.index(first) if is_alternate and first in rest else len(rest)
            if second not in rest[:until]:
                return False
    return True


def _chains(trace: Trace, first: str, second: str) -> bool:
    return all(trace[place + 1 : place + 2] == (second,) for place, name in enumerate(trace) if name == first)


def _backwards(trace: Trace) -> Trace:
    return tuple(reversed(trace))


_HOLDS: Mapping[str, Callable[[Trace, str, str], bool]] = {
    "prior": lambda trace, a, b: all(
        not (trace[i] == b and trace[j] == a) for i in range(len(trace)) for j in range(i + 1, len(trace))
    ),
    "exclusive": lambda trace, a, b: not (a in trace and b in trace),
    "require": lambda trace, a, b: a not in trace or b in trace,
    "existence": lambda trace, a, _: a in trace,
    "end": lambda trace, a, _: a not in trace[:-1],
    "init": lambda trace, a, _: trace[:1] == (a,),
    "last": lambda trace, a, _: trace[-1:] == (a,),
    "response": _responds,
    "precedence": lambda trace, a, b: _responds(_backwards(trace), b, a),
    "alternate response": lambda trace, a, b: _responds(trace, a, b, is_alternate=True),
    "alternate precedence": lambda trace, a, b: _responds(_backwards(trace), b, a, is_alternate=True),
    "chain response": _chains,
    "chain precedence": lambda trace, a, b: _chains(_backwards(trace), b, a),
}
_PLAIN = ("prior", "exclusive", "require", "existence", "end")
_SINGLE = ("existence", "end", "init", "last")
