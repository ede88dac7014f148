"""The approximate join, which purges by probable punctuations and so may lose a few results.

Source: section 7.5 of the specification of punctuation-aware joins. Results are never spurious. The number of purged
events of each key is kept, so a loss is counted when an event arrives that would have joined them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.errors import JoinStateError
from joins.items import Cause, Item, ItemColumns
from literature.punctuations import Hint, OneOf, Pattern, ProbablePunctuation, hint_form, matches, read_hint
from literature.spilling.join import SpillingJoin
from literature.spilling.recall import RecallBudget, RecallRules, Risk, inherited
from literature.spilling.results import SpilledColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbablyOver:
    """Keys that are probably finished: no more of their results come.

    Attributes:
        pattern: The keys.
        probability: Probability that no more results come.
        cause: ``REGULAR``: both inputs have finished the keys. ``IMMEDIATE``: one has, and no event of it is stored.
    """

    pattern: Pattern
    probability: float
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """The effects of a hint.

    Attributes:
        found: Pairs that were found as events came back from disk.
        purged: Number of events that the hint purged.
        over: The keys that the hint names, if they are probably finished.
    """

    found: SpilledColumns
    purged: int
    over: ProbablyOver | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallReport:
    """Numbers of found and lost results.

    Attributes:
        emitted: Found pairs.
        lost_bound: Expected number of lost pairs.
        lost_most: Upper bound of lost pairs, with the confidence of the rules.
        lost_observed: Pairs that were observed to be lost.
        measured: Share of the pairs so far that was found.
    """

    emitted: int
    lost_bound: float
    lost_most: float
    lost_observed: int
    measured: float


class ApproximateJoin:
    """A join that spills, with a target recall.

    A probable punctuation purges if its input ends after its scope (``Scope.is_rest``) and the scope has a bounded
    number of events, as purged events do not come back. Any other is only a hint, and so is one that the budget does
    not allow to purge. Events on disk are not purged, nor events in memory that may have pairs with events on disk.

    Args:
        join: A fresh join.
        rules: Bounds of the loss.
    """

    def __init__(self, join: SpillingJoin, rules: RecallRules) -> None:
        self._join = join
        self._rules = rules
        self._budget = RecallBudget()
        self._purged: tuple[Counter[int], Counter[int]] = (Counter(), Counter())  # events of each key, by their input
        self._announced: tuple[list[ProbablePunctuation], list[ProbablePunctuation]] = ([], [])

    @property
    def join(self) -> SpillingJoin:
        """The wrapped join, for ``idle``, ``propagate``, ``finish`` and ``tune``."""
        return self._join

    @property
    def emitted(self) -> int:
        """The number of pairs that were found."""
        stats = self._join.stats
        return stats.memory_results + stats.disk_results

    @property
    def report(self) -> RecallReport:
        """Numbers of found and lost results."""
        return RecallReport(
            emitted=self.emitted,
            lost_bound=self._budget.bound(None),
            lost_most=self._budget.bound(self._rules.confidence),
            lost_observed=self._budget.observed,
            measured=self._budget.recall(self.emitted),
        )

    def push(
        self, items: ItemColumns, patterns: Sequence[Pattern] = (), payloads: Sequence[bytes | None] | None = None
    ) -> SpilledColumns:
        """Process items, as ``SpillingJoin.push`` does."""
        joined = self._join.push(items, patterns, payloads)
        if any(self._purged):
            self._observe(items, patterns, set(joined.violations.tolist()))
        return joined

    def announce(self, number: int, hint: Hint, time_us: int) -> Announced:
        """Process a hint of an input about its next events.

        Raises:
            PunctuationRefused: The pattern of the hint has values that are no integers.
        """
        joined = self._join.announce(number, hint, time_us)
        if not isinstance(hint, ProbablePunctuation) or not hint.scope.is_rest:
            return Announced(found=joined, purged=0, over=None)
        purged = self._purge(number, hint)
        over = self._probably_over(number, hint)
        self._announced[number].append(hint)
        return Announced(found=joined, purged=purged, over=over)

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name."""
        head, arrays = self._join.dump()
        recall = {
            "budget": self._budget.dump(),
            "purged": [sorted(map(list, purged.items())) for purged in self._purged],
            "announced": [list(map(hint_form, announced)) for announced in self._announced],
        }
        return {**head, "recall": recall}, arrays

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for a join with the same rules and folder.

        Raises:
            JoinStateError: The state or a file is damaged, or the state has another form.
        """
        self._join.load(head, arrays)
        try:
            recall = head["recall"]
            self._budget = RecallBudget.load(recall["budget"])
            first, second = (Counter(dict(purged)) for purged in recall["purged"])
            self._purged = first, second
            for number, forms in enumerate(recall["announced"]):
                self._announced[number][:] = map(read_hint, forms)  # type: ignore[arg-type]
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"the recall of a saved join cannot be read: {error}") from error

    def _purge(self, number: int, hint: ProbablePunctuation) -> int:
        """Purge the keys of a hint from the other input, up to the number of events per key that the budget allows."""
        events, counts = hint.scope.events, self._purged[1 - number]
        keys = self._join.droppable(1 - number, hint.pattern)
        if events is None or not len(keys):
            return 0
        distinct_keys, fresh = np.unique(keys, return_counts=True)
        sizes = fresh + np.array([counts[key] for key in distinct_keys.tolist()], np.int64)
        for most in np.unique(sizes)[::-1].tolist():
            risk = Risk.of(hint, events, most)
            if self._budget.allows(risk, self._rules, self.emitted):
                self._budget = self._budget.with_risk(risk)
                dropped = self._join.drop(1 - number, distinct_keys[sizes <= most])
                counts.update(dropped.tolist())
                return len(dropped)
        return 0

    def _observe(self, items: ItemColumns, patterns: Sequence[Pattern], violations: set[int]) -> None:
        """Count the results that items would have had with purged events; forget the counts of closed keys."""
        keys = items.keys.view(np.int64)
        purged_keys = np.array(sorted(set().union(*self._purged)), np.int64)
        is_closing = (items.kinds == Item.CLOSING) & self._join.rules.uses_punctuations
        for place in np.flatnonzero(is_closing | ((items.kinds == Item.EVENT) & np.isin(keys, purged_keys))).tolist():
            purged = self._purged[1 - int(items.inputs[place])]
            if is_closing[place]:
                _forget(purged, patterns[int(keys[place])])
            elif place not in violations:
                self._budget.observed += purged[int(keys[place])]

    def _probably_over(self, number: int, hint: ProbablePunctuation) -> ProbablyOver | None:
        """The finished keys of a hint, if both inputs have finished them or no event of this input is stored."""
        if (other_probability := self._other_says(number, hint.pattern)) is not None:
            cause, probability = Cause.REGULAR, inherited(Cause.REGULAR, hint.probability, other_probability)
        elif not self._join.may_hold(number, hint.pattern):
            cause, probability = Cause.IMMEDIATE, inherited(Cause.IMMEDIATE, hint.probability)
        else:
            return None
        return ProbablyOver(pattern=hint.pattern, probability=probability, cause=cause)

    def _other_says(self, number: int, pattern: Pattern) -> float | None:
        """The probability that the other input has finished all keys of a pattern; None: it announced no such thing."""
        if self._join.has_closed(1 - number, pattern):
            return 1.0
        probabilities = [
            punctuation.probability for punctuation in self._announced[1 - number] if punctuation.pattern == pattern
        ]
        return max(probabilities, default=None)


def _forget(purged: Counter[int], pattern: Pattern) -> None:
    """Forget the counts of keys that the other input has closed, as none of their results are lost any more."""
    closed_keys = pattern.values if isinstance(pattern, OneOf) else [key for key in purged if matches(pattern, key)]
    for key in closed_keys:
        purged.pop(int(key), None)
