"""The measured lateness of a stream: the current bound of out-of-orderness, and the decisions that led to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.runtime import Stores
from service.stores import Decision
from shards import LATENESS
from streams import AutoLateness, LatenessDecider, StreamDeclaration

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLateness:
    """The measured bound of a stream with ``lateness: auto``. If shards differ, ``bound_us`` is their smallest bound.

    ``seen`` summarises the events since the last decision, or is None before the first event. Its members are the
    number of ``events``, the largest lag ``largest_us``, and the number of events ``beyond`` the largest permitted
    bound. Each record of ``decisions`` also has the chosen ``bound`` in microseconds. ``total`` counts all decisions.
    """

    bound_us: int
    seen: Mapping[str, int] | None
    decisions: Sequence[Decision]
    total: int


def measured_lateness(stores: Stores, declaration: StreamDeclaration) -> MeasuredLateness | None:
    """Return the measured bound of a stream, or None if the stream declares a fixed bound or no lateness."""
    if not isinstance(declaration.lateness, AutoLateness):
        return None
    decider = stores.deciders.get(declaration.name, LATENESS)
    reports = (report.streams.get(declaration.name) for report in stores.pipeline_status.shards())
    bounds = [
        stream_report.lateness_us
        for stream_report in reports
        if stream_report is not None and stream_report.lateness_us is not None
    ]
    return MeasuredLateness(
        bound_us=min(bounds, default=declaration.lateness.start_us),
        seen=None if decider.state is None else LatenessDecider.from_json(decider.state).seen(),
        decisions=decider.decisions,
        total=decider.total,
    )


def as_in_force(stores: Stores, declaration: StreamDeclaration) -> StreamDeclaration:
    """Return a declaration for matching past events again. The lateness ``auto`` is replaced by the current bound."""
    measured = measured_lateness(stores, declaration)
    return declaration if measured is None else replace(declaration, lateness=measured.bound_us / _SECOND_US)
