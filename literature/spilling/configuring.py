"""Rules that tune a running spilling join by its counts.

Source: the configurator of section 3.2 of the specification of punctuation-aware joins, and the purge threshold of
least cost of its section 4. A rule is a function of counts and settings. Rules change the amount of work and the time
of results, never the results themselves, and they leave the memory limit alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from joins.errors import JoinRefused
from literature.costs import best_purge_threshold
from literature.spilling.monitor import Thresholds
from literature.spilling.registry import Component, Propagation, Row, default_rows, require_usable
from literature.spilling.results import SpillingRules, SpillingStats

_PRESSURE = 0.8  # of the events that may be in memory
_NEAR = 0.25  # a threshold within this share of the best one stays
_MOST_PUNCTUATIONS = 1_024  # until the next propagation
_FEWEST_ACTIVATED, _MOST_ACTIVATED = 64, 65_536  # events of a bucket
_REFUSALS = 16  # remembered at most

Consumer: TypeAlias = Literal["pushed", "polling", "blocking", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Counts of a join since its last report.

    Attributes:
        rules: The declared rules of the join.
        consumer: The reader of its punctuations. ``pushed``: continues without them. ``polling``: asks for them.
            ``blocking``: waits for them, as a total of a key does. ``none``: no reader.
        counted: Counts since the last report; ``in_memory`` and ``on_disk`` are current.
        live: Events in memory right after the last purge.
    """

    rules: SpillingRules
    consumer: Consumer
    counted: SpillingStats
    live: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that rules may change: thresholds and rows of the registry."""

    thresholds: Thresholds
    rows: tuple[Row, ...]


Rule: TypeAlias = Callable[[Observed, Settings], Settings]


def purge_by_need(observed: Observed, settings: Settings) -> Settings:
    """Purge eagerly where memory is short or keys are found by an index; otherwise at the interval of least cost."""
    counted, thresholds = observed.counted, settings.thresholds
    is_short = counted.relocations > 0 or counted.in_memory >= _PRESSURE * thresholds.memory_events
    if is_short or observed.rules.purge == "indexed":
        return replace(settings, thresholds=replace(thresholds, purge_punctuations=1))
    if counted.punctuations and not counted.purges:  # purges too rare to learn from
        rarely = max(1, thresholds.purge_punctuations // 2)
        return replace(settings, thresholds=replace(thresholds, purge_punctuations=rarely))
    if not (counted.punctuations and counted.purged and counted.events and observed.live):
        return settings
    garbage, spacing = counted.purged / counted.punctuations, counted.events / counted.punctuations
    best = round(best_purge_threshold(observed.live, garbage, spacing, observed.rules.buckets))
    if abs(best - thresholds.purge_punctuations) <= _NEAR * thresholds.purge_punctuations:
        return settings
    return replace(settings, thresholds=replace(thresholds, purge_punctuations=best))


def propagate_for_consumer(observed: Observed, settings: Settings) -> Settings:
    """Propagate at once for a blocking consumer, on request for a polling one, by thresholds for a pushed one."""
    modes: Mapping[Consumer, Propagation] = {
        "blocking": "on-zero",
        "polling": "pull",
        "pushed": "push",
        "none": "none",
    }
    mode = modes[observed.consumer] if observed.rules.uses_punctuations else "none"
    components = {Component.INDEX_BUILD, Component.PROPAGATION}
    index_rows = default_rows(mode, is_index_eager=mode == "on-zero", purges=observed.rules.uses_punctuations)
    other_rows = [row for row in settings.rows if not components & set(row.components)]
    return replace(settings, rows=(*other_rows, *(row for row in index_rows if components & set(row.components))))


def propagate_in_batches(observed: Observed, settings: Settings) -> Settings:
    """Propagate less often where most propagations report nothing, and more often where each reports several."""
    counted, now = observed.counted, settings.thresholds.propagate_punctuations
    if observed.consumer != "pushed" or not counted.propagations:
        return settings
    if 2 * counted.propagated < counted.propagations:
        now = min(2 * now, _MOST_PUNCTUATIONS)
    elif counted.propagated > 8 * counted.propagations:
        now = max(now // 2, 1)
    return replace(settings, thresholds=replace(settings.thresholds, propagate_punctuations=now))


def join_disk_where_it_pays(observed: Observed, settings: Settings) -> Settings:
    """Let idle disk joins wait for more events where they find no pairs, and for fewer where they find some."""
    counted, now = observed.counted, settings.thresholds.activation_events
    if not counted.disk_joins:
        return settings
    if counted.disk_results:
        now = max(min(now, _MOST_ACTIVATED) // 2, min(now, _FEWEST_ACTIVATED))
    else:
        now = max(min(2 * now, _MOST_ACTIVATED), now)
    return replace(settings, thresholds=replace(settings.thresholds, activation_events=now))


RULES: tuple[Rule, ...] = (purge_by_need, propagate_for_consumer, propagate_in_batches, join_disk_where_it_pays)


class Configurator:
    """Tunes a join at fixed intervals of items.

    Args:
        consumer: The reader of the join's punctuations.
        interval_items: Number of items between reports.
        rules: Applied in order; each sees the settings of those before it.

    Attributes:
        consumer: The reader; can be changed while the join runs.
        refused: Reasons why changes by rules were not usable, newest last; such a rule changes nothing.
    """

    def __init__(
        self, consumer: Consumer = "pushed", *, interval_items: int = 1_000, rules: Sequence[Rule] = RULES
    ) -> None:
        if interval_items < 1:
            raise ValueError(f"reports are at least an item apart, not {interval_items}")
        self.consumer = consumer
        self.refused: list[str] = []
        self._interval = interval_items
        self._rules = tuple(rules)
        self._items = 0
        self._before = SpillingStats()

    @property
    def items_left(self) -> int:
        """The number of items until the next report."""
        return self._interval - self._items

    def take(self, items: int) -> bool:
        """Count items, at most ``items_left``; returns whether a report is due."""
        self._items += items
        return self._items >= self._interval

    def decide(self, rules: SpillingRules, stats: SpillingStats, live: int, settings: Settings) -> Settings:
        """Make a report: the settings for the next items, from the counts so far."""
        counted = {name: value - getattr(self._before, name) for name, value in asdict(stats).items()}
        current = {"in_memory": stats.in_memory, "on_disk": stats.on_disk}
        observed = Observed(
            rules=rules, consumer=self.consumer, counted=SpillingStats(**(counted | current)), live=live
        )
        self._items, self._before = 0, stats
        for rule in self._rules:
            try:
                changed = rule(observed, settings)
                require_usable(changed.rows)
            except JoinRefused as error:
                self.refused = [*self.refused, f"{getattr(rule, '__name__', rule)}: {error}"][-_REFUSALS:]
            else:
                settings = changed
        return settings

    def dump(self) -> dict[str, Any]:
        """The state as a JSON value."""
        return {"items": self._items, "before": asdict(self._before), "consumer": self.consumer}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Load a state that ``dump`` returned for a configurator with the same interval and rules."""
        self._items, self._before = int(saved["items"]), SpillingStats(**saved["before"])
        self.consumer = saved["consumer"]
