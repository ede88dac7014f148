"""Frequencies of names in the traces of a stream, as observed or estimated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from constraints.model import ConstraintSet

UNKNOWN = 0.5


class Frequencies:
    """The share of traces that show a name, for each name (type or symbol) of a constraint set.

    Names are assumed to be independent unless constraints relate them. An observed frequency is used unchanged. A name
    that every trace must show has frequency 1, and a name that no trace can show has frequency 0. All other names get
    the estimate ``UNKNOWN``, limited by the observed frequencies of related names. If A requires B, B is at least as
    frequent as A. If A excludes B, B is at most as frequent as traces without A.
    """

    def __init__(self, constraint_set: ConstraintSet) -> None:
        self._set = constraint_set
        self._observed = constraint_set.settings.frequencies
        self._known = self._estimated()

    def _estimated(self) -> Mapping[str, float]:
        names = sorted(self._set.names)
        closures = {name: self._set.horn_closure((name,)) for name in names}
        always = self._set.horn_closure(())
        estimates = dict.fromkeys(names, UNKNOWN)
        for pair in self._pairs():
            for excluding, excluded in (pair, pair[::-1]):
                if excluding in self._observed and excluded in estimates:
                    estimates[excluded] = min(estimates[excluded], max(0.0, 1.0 - self._observed[excluding]))
        for name in names:
            if name in self._observed:
                for required in closures[name] & estimates.keys():
                    estimates[required] = max(estimates[required], self._observed[name])
        for name in names:
            if name in always:
                estimates[name] = 1.0
            elif self._set.is_ruled_out(closures[name] | always):
                estimates[name] = 0.0
        return {**estimates, **self._observed}

    def _pairs(self) -> list[tuple[str, str]]:
        return [
            (first, second)
            for clause in self._set.clauses
            if clause.head is None and len(clause.body) == 2
            for first, second in [sorted(clause.body)]
        ]

    def of(self, name: str) -> float:
        return self._known.get(name, UNKNOWN)

    def of_all(self, names: Iterable[str], condition: frozenset[str] = frozenset()) -> float:
        """Return the share of traces that show all of ``names``, among the traces that show all of ``condition``."""
        certain = self._set.horn_closure(condition)
        uncertain = sorted(frozenset(names) - certain)
        if self._set.is_ruled_out(self._set.horn_closure(certain.union(uncertain))):
            return 0.0
        share = 1.0
        for name in sorted(uncertain, key=lambda candidate: (-len(self._set.horn_closure((candidate,))), candidate)):
            if name not in certain:  # a required name occurs in every trace with the name that requires it
                share *= self.of(name)
                certain = self._set.horn_closure(certain | {name})
        return share
