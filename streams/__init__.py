"""What an event is, before anyone looks for patterns in it.

Purpose: the outside form of an event (CloudEvents or plain JSON), the inside form (a columnar batch), the declaration
of a stream, the records of the event log, event time, and the root of the error tree. Promises: values are immutable,
the order of rows is the order of the log, and nothing here knows who reads a batch.
"""

from streams.batch import EventBatch
from streams.clock import Clock, SystemClock
from streams.declaration import StreamDeclaration
from streams.errors import ForestallError, StreamError
from streams.event import Event
from streams.hashing import key_hash, shard_of
from streams.records import LogEntry, RecordKind

__all__ = [
    "Clock",
    "Event",
    "EventBatch",
    "ForestallError",
    "LogEntry",
    "RecordKind",
    "StreamDeclaration",
    "StreamError",
    "SystemClock",
    "key_hash",
    "shard_of",
]
