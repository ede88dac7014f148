"""What senders know of time and of the end of traces, as use cases without HTTP."""

from __future__ import annotations

from dataclasses import replace

from service.intake.posting import require_posted
from service.runtime import Stores
from streams import Punctuation, TraceEnd


class Announcing:
    """The use cases.

    Args:
        stores: Where streams are registered, and the log.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def punctuate(self, stream: str, punctuation: Punctuation) -> None:
        """Promise what does not come behind this place of the log, in every shard.

        A range without a time is finished at that of the stream's newest event: at the same time in every shard.

        Raises:
            UnknownStream: The stream is not declared.
            StreamDerived: Its time follows from that of the streams that feed it.
        """
        require_posted(self._stores.registry.stream(stream))
        if punctuation.range is not None and punctuation.time_us is None:
            _, times = self._stores.stream_times.read()
            known = times.get(stream)
            punctuation = replace(punctuation, time_us=None if known is None else known.newest_us)
        self._stores.announcements.append(stream, punctuation)

    def end_trace(self, stream: str, end: TraceEnd) -> None:
        """End the trace of a key at this place of the log; nothing happens where none is open.

        Only the shard of the key is told, as no other holds a trace of it.

        Raises:
            UnknownStream: The stream is not declared.
        """
        self._stores.registry.stream(stream)
        self._stores.announcements.append(stream, end, end.key)
