"""The operators that feed or read a stream, and the reason why events of the stream wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.observing.measured_lateness import MeasuredLateness, measured_lateness
from service.registering.derivations import uses_of
from service.runtime import Stores
from service.stores import OperatorPart, ShardReport, StreamUse
from streams import StreamDeclaration, format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamUsage:
    """The operators that feed or read a stream.

    ``waits_for`` is the reason why events of the stream wait, in words, or None if no events wait. ``lateness`` is the
    measured lateness of the stream, if any.
    """

    uses: Sequence[StreamUse]
    waits_for: str | None = None
    lateness: MeasuredLateness | None = None


def stream_usage(stores: Stores, declaration: StreamDeclaration) -> StreamUsage:
    """Return the current use of a stream."""
    uses = uses_of(stores.registry, declaration.name)
    if not declaration.derived:
        return StreamUsage(uses=uses, lateness=measured_lateness(stores, declaration))
    producers = [feeder for feeder in stores.registry.timing_feeders() if feeder.into == declaration.name]
    return StreamUsage(
        uses=uses, waits_for=waiting_reason(declaration.name, producers, stores.pipeline_status.shards())
    )


def waiting_reason(stream: str, producers: Sequence[OperatorPart], reports: Sequence[ShardReport]) -> str | None:
    """Return the reason why events of a derived stream wait, in words, or None if no events wait."""
    waiting = sum(report.streams[stream].waiting or 0 for report in reports if stream in report.streams)
    if not waiting:
        return None
    events = f"{waiting:,} event{'s wait' if waiting > 1 else ' waits'}"
    held = f"{waiting:,} event{'s are' if waiting > 1 else ' is'} held"
    if not producers:
        return f"{events} and nothing feeds the stream any more"
    times = sorted(_times(producers, reports))
    if not times:
        return f"{events} for the first report of the shards"
    is_known, time_us, source, shard = times[0]
    timed = {name for is_timed, _, name, _ in times if is_timed}
    if untimed := sorted({name for _, _, name, _ in times} - timed):
        return (
            f"{events} for the first event of {' and of '.join(untimed)}; without one, a punctuation ends the wait "
            "(forestall streams punctuate), and so does quiet_after"
        )
    if not is_known:
        return f"{events} until shard {shard} has seen time pass in {source}"
    place = f"stream {source!r} passes {format_time(time_us)} in shard {shard}"
    return f"{held} until {place}; no newer event has arrived there"


def _times(producers: Sequence[OperatorPart], reports: Sequence[ShardReport]) -> Iterator[tuple[bool, int, str, int]]:
    """Yield a tuple for each shard and each stream that the producers read. The tuples sort by watermark.

    The first member is False if the watermark is unknown. The others are the watermark, the stream and the shard.
    """
    for label in {f"{producer.stream}@{producer.key}" if producer.key else producer.stream for producer in producers}:
        for report in reports:
            stream_report = report.streams.get(label)
            time_us = None if stream_report is None else stream_report.watermark_us
            yield time_us is not None, time_us or 0, label.replace("@", " by "), report.shard
