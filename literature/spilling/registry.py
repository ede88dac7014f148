"""The registry: its rows map the happenings of a join to the components that run, and are checked for use.

Source: the event-driven framework of PJoin (section 3.2 of the specification of punctuation-aware joins).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from joins.errors import JoinRefused


class Happening(StrEnum):
    """Happenings in a join, at which components may run."""

    STREAM_EMPTY = "stream-empty"
    PURGE_THRESHOLD_REACHED = "purge-threshold-reached"
    STATE_FULL = "state-full"
    PUNCTUATION_READY = "punctuation-ready"
    PAIR_READY = "pair-ready"
    COUNT_ZERO = "count-zero"
    PROPAGATE_REQUEST = "propagate-request"
    PROPAGATE_TIME_EXPIRED = "propagate-time-expired"
    PROPAGATE_COUNT_REACHED = "propagate-count-reached"
    ANNOUNCED = "announced"  # an input announced the keys of its next events


class Component(StrEnum):
    """Components of a join."""

    DISK_JOIN = "disk-join"
    STATE_PURGE = "state-purge"
    STATE_RELOCATION = "state-relocation"
    INDEX_BUILD = "index-build"
    PROPAGATION = "propagation"
    READ_BACK = "read-back"


class Condition(StrEnum):
    """Conditions of a row."""

    ALWAYS = "always"
    ACTIVATED = "activated"  # some bucket has enough uncovered events on disk, or the join was idle for long enough
    UNUSED_PUNCTUATIONS = "unused-punctuations"  # some punctuations were not used for purging yet
    NO_UNUSED_PUNCTUATIONS = "no-unused-punctuations"


Propagation = Literal["none", "push", "pull", "on-zero", "pair"]
PROPAGATIONS: tuple[Propagation, ...] = ("none", "push", "pull", "on-zero", "pair")


@dataclass(frozen=True, slots=True)
class Row:
    """The components that run at a happening, in order, if a condition holds."""

    happening: Happening
    components: tuple[Component, ...]
    condition: Condition = Condition.ALWAYS


def default_rows(
    propagation: Propagation = "push", *, is_index_eager: bool = False, purges: bool = True
) -> tuple[Row, ...]:
    """The usual registry.

    Args:
        propagation: ``push``: by the thresholds for punctuations and time. ``pull``: on request. ``on-zero``: as soon
            as the last event that a punctuation counts has left. ``pair``: when both inputs have closed a key.
        is_index_eager: Whether a punctuation counts its events when it arrives, not when it may be propagated.
        purges: Whether closed keys purge; otherwise the join is XJoin.
    """
    rows = [
        Row(Happening.STREAM_EMPTY, (Component.DISK_JOIN,), Condition.ACTIVATED),
        Row(Happening.ANNOUNCED, (Component.READ_BACK,)),
    ]
    if not purges:
        return (*rows, Row(Happening.STATE_FULL, (Component.STATE_RELOCATION,)))
    rows += [
        Row(Happening.PURGE_THRESHOLD_REACHED, (Component.STATE_PURGE,)),
        Row(Happening.STATE_FULL, (Component.STATE_PURGE,), Condition.UNUSED_PUNCTUATIONS),
        Row(Happening.STATE_FULL, (Component.STATE_RELOCATION,), Condition.NO_UNUSED_PUNCTUATIONS),
    ]
    if is_index_eager or propagation == "on-zero":
        rows.append(Row(Happening.PUNCTUATION_READY, (Component.INDEX_BUILD,)))
    components = (Component.INDEX_BUILD, Component.PROPAGATION)
    causes = {
        "push": (Happening.PROPAGATE_COUNT_REACHED, Happening.PROPAGATE_TIME_EXPIRED),
        "pull": (),
        "on-zero": (Happening.COUNT_ZERO,),
        "pair": (Happening.PAIR_READY,),
        "none": (),
    }[propagation]
    if propagation != "none":
        causes = (*causes, Happening.PROPAGATE_REQUEST)
    return (*rows, *(Row(cause, components) for cause in causes))


def require_usable(rows: Sequence[Row]) -> None:
    """Check a registry.

    Raises:
        JoinRefused: A row has unknown names, a full state is not relieved, or punctuations are propagated and never
            indexed.
    """
    for row in rows:
        has_known_names = isinstance(row.happening, Happening) and isinstance(row.condition, Condition)
        if not has_known_names or not row.components or not all(isinstance(part, Component) for part in row.components):
            raise JoinRefused(f"a row of the registry names an unknown event, condition or component: {row}")
    relocates = any(
        row.happening == Happening.STATE_FULL
        and Component.STATE_RELOCATION in row.components
        and row.condition in (Condition.ALWAYS, Condition.NO_UNUSED_PUNCTUATIONS)
        for row in rows
    )
    if not relocates:
        raise JoinRefused("no row of the registry relocates a full state once no unused punctuation is left")
    purges_first = [row for row in rows if row.condition == Condition.UNUSED_PUNCTUATIONS]
    is_always = any(
        row.happening == Happening.STATE_FULL
        and row.condition == Condition.ALWAYS
        and Component.STATE_RELOCATION in row.components
        for row in rows
    )
    purges = any(
        row.happening == Happening.STATE_FULL and Component.STATE_PURGE in row.components for row in purges_first
    )
    if not is_always and not purges:
        raise JoinRefused("no row of the registry frees a full state while unused punctuations are left")
    components = {component for row in rows for component in row.components}
    if Component.PROPAGATION in components and Component.INDEX_BUILD not in components:
        raise JoinRefused("the registry propagates punctuations and never builds their index")
