"""What an event is, before anyone looks for patterns in it.

Purpose: the outside form of an event (CloudEvents or plain JSON), the inside form (a columnar batch), the declaration
of a stream, the records of the event log, event time, and the root of the error tree. Promises: values are immutable,
the order of rows is the order of the log, and nothing here knows who reads a batch.
"""

from streams.batch import EventBatch
from streams.clock import Clock, SystemClock
from streams.cloudevents import parse_cloudevent, parse_cloudevents, render_cloudevent
from streams.declaration import FieldMapping, StreamDeclaration
from streams.errors import DeclarationError, EventFileError, EventRejected, Fault, ForestallError, StreamError
from streams.event import Event
from streams.hashing import key_hash, shard_of
from streams.parsing import ParsedEvents
from streams.plain import parse_plain, parse_plain_events, render_plain
from streams.records import LogEntry, RecordKind, position_order
from streams.timestamps import format_time, parse_time

__all__ = [
    "Clock",
    "DeclarationError",
    "Event",
    "EventBatch",
    "EventFileError",
    "EventRejected",
    "Fault",
    "FieldMapping",
    "ForestallError",
    "LogEntry",
    "ParsedEvents",
    "RecordKind",
    "StreamDeclaration",
    "StreamError",
    "SystemClock",
    "format_time",
    "key_hash",
    "parse_cloudevent",
    "parse_cloudevents",
    "parse_plain",
    "parse_plain_events",
    "parse_time",
    "position_order",
    "render_cloudevent",
    "render_plain",
    "shard_of",
]
