"""Limits of the work that a pattern may cost. Work is counted, so every replay gives up at the same events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

MOST_WORK = 2**53
MOST_TRACES = 1_000_000
MOST_EVENTS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkBudget:
    """The limits of the work that a pattern may cost.

    Each partial match that an event meets costs 1. The evaluation of conditions between steps also costs 1 for each 64
    bytes of texts, each 16 bound events that are skipped, and each 4 events of an aggregate.

    The default values are a part of the log's format: they apply to a pattern whose record has no budget. A release
    that changes the defaults has to keep the old ones for such records.

    Attributes:
        per_event: Work for each event of a trace that does not count towards the limits, at least 0.
        per_trace: Work that the events of a trace may cost beyond ``per_event``, at least 1. If they cost more, the
            pattern is given up in the trace.
        traces: Number of traces in which the pattern may be given up, at least 0. In one more trace, it is suspended.
        forgiven_after: Number of events of the pattern's stream in the shard, at least 1, after which a trace in which
            the pattern was given up no longer counts.
        in_all: Work that the pattern may cost in all traces of a shard, beyond ``per_event`` for each event of its
            stream, at least 1. If it costs more, it is suspended. Older records lack this member and have the default.
    """

    per_event: int = 1_000
    per_trace: int = 10_000_000
    traces: int = 10
    forgiven_after: int = 1_000_000
    in_all: int = 20_000_000

    def __post_init__(self) -> None:
        ranges = {
            "per_event": (0, MOST_WORK),
            "per_trace": (1, MOST_WORK),
            "traces": (0, MOST_TRACES),
            "forgiven_after": (1, MOST_EVENTS),
            "in_all": (1, MOST_WORK),
        }
        for name, (least, most) in ranges.items():
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be {least} to {most}")

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Any) -> WorkBudget:
        """Read the result of ``to_json``. A missing member has its default.

        Raises ``ValueError`` for any other form.
        """
        names = {member.name for member in fields(cls)}
        if not isinstance(document, Mapping) or not document.keys() <= names:
            raise ValueError(f"a budget is {document!r}; it must be an object with {', '.join(sorted(names))}")
        if any(not isinstance(value, int) or isinstance(value, bool) for value in document.values()):
            raise ValueError(f"a budget is {document!r}; its members must be whole numbers")
        return cls(**document)


USUAL_BUDGET = WorkBudget()
