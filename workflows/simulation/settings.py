"""Settings of a simulated stream."""

from __future__ import annotations

from dataclasses import dataclass

from workflows.errors import InvalidWorkflow


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """Size, time and keys of a simulated stream.

    Attributes:
        concurrent: Number of traces that are open at a time, fewer near the end; with durations, the largest number.
        start_us: Time before the first event, microseconds since 1970 UTC.
        interval_us: Mean time between two events of the stream; with durations, between the beginnings of two traces.
            Times rise strictly.
        key_prefix: The traces' keys are ``<prefix>1``, ``<prefix>2``, ... by their beginning; the ids of their events
            ``<key>:1``, ``<key>:2``, ...
    """

    traces: int = 2_000
    concurrent: int = 1_000
    start_us: int = 1_767_225_600_000_000
    interval_us: int = 1_000_000
    key_prefix: str = "trace-"

    def __post_init__(self) -> None:
        for name, least in (("traces", 0), ("concurrent", 1), ("interval_us", 1)):
            if getattr(self, name) < least:
                raise InvalidWorkflow(f"simulation: {name} must be at least {least}, got {getattr(self, name)}")
