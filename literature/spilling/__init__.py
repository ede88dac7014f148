"""PJoin and XJoin: exact joins of two inputs without windows, whose state is written to files when memory is full.

Purpose: join events by integer keys, purge events that closed keys make useless, spill events that do not fit, and
propagate closed keys once none of their results can come. Promises: each pair once, whatever the thresholds, the
registry, the number of buckets and the cuts into batches; no result of a key after its punctuation was propagated; a
saved state names files and lengths, and is readable as long as it is the last one or was not released. Announcements of
inputs move events and change no result; with a target recall, probable punctuations purge, and lost results are
counted.
"""

from literature.spilling.approximate import Announced, ApproximateJoin, ProbablyOver, RecallReport
from literature.spilling.configuring import RULES, Configurator, Consumer, Observed, Rule, Settings
from literature.spilling.files import DiskTraffic
from literature.spilling.join import SpillingJoin
from literature.spilling.monitor import UNLIMITED, Thresholds
from literature.spilling.recall import RecallBudget, RecallRules, Risk, inherited
from literature.spilling.registry import (
    PROPAGATIONS,
    Component,
    Condition,
    Happening,
    Propagation,
    Row,
    default_rows,
    require_usable,
)
from literature.spilling.results import Propagated, SpilledColumns, SpillingRules, SpillingStats

__all__ = [
    "PROPAGATIONS",
    "RULES",
    "UNLIMITED",
    "Announced",
    "ApproximateJoin",
    "Component",
    "Condition",
    "Configurator",
    "Consumer",
    "DiskTraffic",
    "Happening",
    "Observed",
    "ProbablyOver",
    "Propagated",
    "Propagation",
    "RecallBudget",
    "RecallReport",
    "RecallRules",
    "Risk",
    "Row",
    "Rule",
    "Settings",
    "SpilledColumns",
    "SpillingJoin",
    "SpillingRules",
    "SpillingStats",
    "Thresholds",
    "default_rows",
    "inherited",
    "require_usable",
]
