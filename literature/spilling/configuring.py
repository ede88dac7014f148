"""Rules that tune a join that spills while it runs, from what it has counted.

Source: the configurator of section 3.2 of the specification of punctuation-aware joins, and the purge threshold of
least cost of its section 4. A rule is a function of counts and settings. It changes how much work there is and when
results come, never which; the memory that the join may take is not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from joins.costs import best_purge_threshold
from joins.errors import JoinRefused
from literature.spilling.monitor import Thresholds
from literature.spilling.registry import Component, Propagation, Row, default_rows, require_usable
from literature.spilling.results import SpillingRules, SpillingStats

_PRESSURE = 0.8  # of the events that may be in memory
_NEAR = 0.25  # a threshold that is so near to the best one stays
_MOST_PUNCTUATIONS = 1_024  # until the next propagation
_FEWEST_ACTIVATED, _MOST_ACTIVATED = 64, 65_536  # events of a bucket
_REFUSALS = 16  # that are remembered

Consumer: TypeAlias = Literal["pushed", "polling", "blocking", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a join counted since the last report.

    Attributes:
        rules: What it was declared to do.
        consumer: What reads its punctuations: ``pushed``: something that goes on without them. ``polling``: it asks.
            ``blocking``: it waits for them, as a total of a key does. ``none``: nothing.
        counted: Differences of counts; ``in_memory`` and ``on_disk`` as they are.
        live: Events in memory right behind the last purge.
    """

    rules: SpillingRules
    consumer: Consumer
    counted: SpillingStats
    live: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What rules may change: thresholds and rows of the registry."""

    thresholds: Thresholds
    rows: tuple[Row, ...]


Rule: TypeAlias = Callable[[Observed, Settings], Settings]


def purge_by_need(observed: Observed, settings: Settings) -> Settings:
    """Purge eagerly where memory is short or keys are found by an index, and else as often as costs least."""
    counted, thresholds = observed.counted, settings.thresholds
    is_short = counted.relocations > 0 or counted.in_memory >= _PRESSURE * thresholds.memory_events
    if is_short or observed.rules.purge == "indexed":
        return replace(settings, thresholds=replace(thresholds, purge_punctuations=1))
    if counted.punctuations and not counted.purges:  # so rarely that nothing is learned
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
    """Report finished keys as soon as something waits for them, when it asks, or every so many punctuations."""
    modes: Mapping[Consumer, Propagation] = {
        "blocking": "on-zero",
        "polling": "pull",
        "pushed": "push",
        "none": "none",
    }
    mode = modes[observed.consumer] if observed.rules.uses_punctuations else "none"
    both = {Component.INDEX_BUILD, Component.PROPAGATION}
    wanted = default_rows(mode, is_index_eager=mode == "on-zero", purges=observed.rules.uses_punctuations)
    others = [row for row in settings.rows if not both & set(row.components)]
    return replace(settings, rows=(*others, *(row for row in wanted if both & set(row.components))))


def propagate_in_batches(observed: Observed, settings: Settings) -> Settings:
    """Propagate more rarely where most propagations report nothing, and more often where each reports several."""
    counted, now = observed.counted, settings.thresholds.propagate_punctuations
    if observed.consumer != "pushed" or not counted.propagations:
        return settings
    if 2 * counted.propagated < counted.propagations:
        now = min(2 * now, _MOST_PUNCTUATIONS)
    elif counted.propagated > 8 * counted.propagations:
        now = max(now // 2, 1)
    return replace(settings, thresholds=replace(settings.thresholds, propagate_punctuations=now))


def join_disk_where_it_pays(observed: Observed, settings: Settings) -> Settings:
    """Let idle disk joins wait for more events where they find nothing, and for fewer where they do."""
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
    """Tunes a join every so many items.

    Args:
        consumer: What reads the punctuations of the join; it can be changed while the join runs.
        interval_items: From report to report.
        rules: In their order; each sees what those before it set.

    Attributes:
        consumer: The same.
        refused: Why what a rule set was left out, the last ones last; such a rule changes nothing.
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
        """Items until the next report."""
        return self._interval - self._items

    def take(self, items: int) -> bool:
        """Items came, at most those that were left; whether a report is due."""
        self._items += items
        return self._items >= self._interval

    def decide(self, rules: SpillingRules, stats: SpillingStats, live: int, settings: Settings) -> Settings:
        """Settings for the items to come, from all that was counted; it is the report."""
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
        """Take what ``dump`` gave of one with the same interval and rules."""
        self._items, self._before = int(saved["items"]), SpillingStats(**saved["before"])
        self.consumer = saved["consumer"]
