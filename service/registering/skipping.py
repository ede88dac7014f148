"""The backlog that an operator skips when it is paused before the backlog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.runtime import Stores


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedBacklog:
    """The events that waited when an operator was paused before them, and by shard the last matched position."""

    events: int
    after: Mapping[int, str]


def skipped_by(stores: Stores) -> SkippedBacklog:
    """The present backlog."""
    after = {report.shard: report.position for report in stores.pipeline_status.shards()}
    return SkippedBacklog(events=stores.backlog.read().waiting.events, after=after)
