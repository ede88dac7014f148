"""Announcements by senders: punctuations about event time and keys, and ends of traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.errors import PunctuationAhead
from service.intake.posting import latest_of, most_ahead, require_posted
from service.runtime import Stores
from shards import DOCUMENT_KINDS, KINDS_BY_NAME
from streams import Clock, Punctuation, StreamDeclaration, TraceEnd, format_time


class Announcing:
    """Appends announcements to the log. Refuses times too far ahead of the clock."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock

    def punctuate(self, stream: str, punctuation: Punctuation) -> Sequence[str]:
        """Append a punctuation, which is a promise about later events, to every shard of the log.

        If the punctuation has a range of keys but no time, it gets the time of the stream's newest event, so that all
        shards use the same time. If the range has no effect on any operator, a warning is returned.

        A punctuation on a derived stream is refused, because the time of the stream follows from its source streams. A
        time too far ahead of the clock is also refused. The limit is the same as for events.
        """
        declaration = self._stores.registry.stream(stream)
        require_posted(declaration)
        self._require_near(declaration, "punctuation", punctuation.before_us, punctuation.time_us)
        if punctuation.range is not None and punctuation.time_us is None:
            _, times = self._stores.stream_times.read()
            stream_times = times.get(stream)
            punctuation = replace(punctuation, time_us=None if stream_times is None else stream_times.newest_us)
        self._stores.announcements.append(stream, punctuation)
        if punctuation.range is None or self._finishes(declaration, punctuation.by):
            return ()
        key = f"the key {punctuation.by!r}" if punctuation.by else "the correlation key"
        advice = [text for kind in DOCUMENT_KINDS if (text := kind.advice_on_ranges(stream, key))]
        return (f"the range finishes nothing: {', and '.join(advice)}",)

    def _finishes(self, declaration: StreamDeclaration, by: str) -> bool:
        """Return whether a punctuation with a range of keys has an effect on any active operator of the stream.

        ``by`` is the key of the range: the name of a further key, or empty for the correlation key.
        """
        return any(
            KINDS_BY_NAME[part.kind].finishes_range(part, by, declaration)
            for kind in DOCUMENT_KINDS
            for operator in self._stores.registry.operators(kind.name).all()
            if operator.state == "active"
            for part in (operator.definition, *(part.definition(operator.version) for part in operator.parts))
        )

    def end_trace(self, stream: str, end: TraceEnd) -> None:
        """End the open trace of a key by a record in the key's shard of the log.

        The record has no effect if no trace is open. A time too far ahead of the clock is refused. The limit is the
        same as for events.
        """
        self._require_near(self._stores.registry.stream(stream), "end of the trace", end.time_us)
        self._stores.announcements.append(stream, end, end.key)

    def _require_near(self, declaration: StreamDeclaration, subject: str, *times_us: int | None) -> None:
        latest_us = latest_of(declaration, self._clock.now_us())
        for time_us in times_us:
            if time_us is not None and time_us > latest_us:
                raise PunctuationAhead(
                    f"stream {declaration.name!r}: the time {format_time(time_us)} of the {subject} is ahead of the "
                    f"clock of the service: {most_ahead(latest_us)}",
                    latest=format_time(latest_us),
                )
