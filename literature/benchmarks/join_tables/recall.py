"""Joins with a target recall: the share of runs that reach the target, and of events that are purged.

*Spent*: 900 results, then one hint about the next 200 events that is as doubtful as the budget allows, and true as
often as it claims; no later results make up for the loss. *Sessions*: keys with four events, after which a source
announces with probability 0.9, 0.99 or 0.999 that the key is over; where it is wrong, two more events come.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from joins import Item, ItemColumns
from literature.benchmarks.join_tables.runs import Shown
from literature.punctuations import ProbablePunctuation, Range, Scope, constant
from literature.spilling import ApproximateJoin, RecallBudget, RecallRules, Risk, SpillingJoin, SpillingRules

_EVENTS = 200
_KEYS = 100


def _join(folder: str, rules: RecallRules) -> ApproximateJoin:
    return ApproximateJoin(SpillingJoin(Path(folder), rules=SpillingRules(buckets=1)), rules)


def _push(join: ApproximateJoin, number: int, keys: list[int]) -> None:
    join.push(ItemColumns.of([(Item.EVENT, number, key, 0) for key in keys]))


def _spent(seed: int, rules: RecallRules) -> tuple[float, float]:
    """The measured recall, and the purged share of the events that a hint names."""
    doubts = [step / 2_000 for step in range(1, 2_000)]
    risks = [Risk(events=_EVENTS, doubt=doubt, most=1, is_claim=False) for doubt in doubts]
    risk = [one for one in risks if RecallBudget().allows(one, rules, 900)][-1]
    chance = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        join = _join(folder, rules)
        for number in (0, 1):
            _push(join, number, [999] * 30)
        _push(join, 0, list(range(20)))
        scope = Scope(events=_EVENTS, is_rest=True)
        hint = ProbablePunctuation(
            pattern=Range(low=0, high=19), scope=scope, probability=1 - risk.doubt, reading="per-event"
        )
        purged = join.announce(1, hint, 1).purged
        is_wrong = chance.random(_EVENTS) < risk.doubt
        _push(join, 1, np.where(is_wrong, chance.integers(0, 20, _EVENTS), 1_000).tolist())
        return join.report.measured, purged / 20


def _sessions(seed: int, rules: RecallRules) -> tuple[float, float]:
    """The measured recall of sessions, and the purged share of the first input's events."""
    chance, purged, late = np.random.default_rng(seed), 0, []
    with tempfile.TemporaryDirectory() as folder:
        join = _join(folder, rules)
        for key in range(_KEYS):
            for number in (0, 1, 0, 1):
                _push(join, number, [key])
            probability = float(chance.choice([0.9, 0.99, 0.999]))
            scope = Scope(events=2, is_rest=True)
            hint = ProbablePunctuation(pattern=constant(key), scope=scope, probability=probability)
            purged += join.announce(1, hint, key).purged
            late += [key] * (2 if chance.random() > probability else 0)
        _push(join, 1, late)
        return join.report.measured, purged / (2 * _KEYS)


def tables(runs: int) -> Iterator[Shown]:
    """The share of runs that reach the target, for each kind of run and rules."""
    for name, run in (("spent", _spent), ("sessions", _sessions)):
        for confidence in (None, 0.95):
            for target in (0.9, 0.95):
                rules = RecallRules(target=target, confidence=confidence)
                found = np.array([run(seed, rules) for seed in range(runs)])
                share, purged = np.mean(found[:, 0] >= target), found[:, 1].mean()
                bound = "expected loss" if confidence is None else "95 % of runs"
                yield (
                    "R",
                    f"{name}, target {target}, by the {bound}: runs that reach it / purged",
                    f"{100 * share:.0f} % / {100 * purged:.0f} %",
                    "" if confidence is None else "at least 95 %",
                )
