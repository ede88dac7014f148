"""What an event is, before anyone looks for patterns in it.

Purpose: the outside form of an event (CloudEvents or plain JSON), the inside form (a columnar batch), the declaration
of a stream, the records of the event log, event time, and the root of the error tree. Promises: values are immutable,
the order of rows is the order of the log, and nothing here knows who reads a batch.
"""

from streams.batch import EventBatch
from streams.clock import Clock, SystemClock
from streams.columns.arrow_columns import column_of, numbers_of, time_column
from streams.columns.ragged import RaggedOrder, ascending_words, ragged_order, ragged_places
from streams.columns.texts import (
    Texts,
    borders_of,
    bytes_of,
    chosen_texts,
    fixed_texts,
    flag_texts,
    joined_texts,
    json_contents,
    json_text,
    lines_of,
    pieces_of,
    run_texts,
    texts_of,
    time_texts,
)
from streams.declaration import Duplicates, FieldMapping, StreamDeclaration, Ties, name_fault
from streams.errors import (
    BatchFormatError,
    ControlRecordError,
    DeclarationError,
    Detail,
    EventBreaksSchema,
    EventFileError,
    EventRejected,
    Fault,
    ForestallError,
    KeptFolderRefused,
    StreamError,
)
from streams.event import Event
from streams.event_time import Late
from streams.forms.cloudevents import parse_cloudevent, render_cloudevent
from streams.forms.column_parsing import parse_columns
from streams.forms.extent import check_extent
from streams.forms.parsing import ParsedEvents, parse_each
from streams.forms.plain import parse_plain, render_plain
from streams.hashing import MAX_SHARDS, key_hash, key_of, shard_of
from streams.kept.folder import kept_folder, kept_top, make_kept_folder, note_use, require_trusted
from streams.kept.kernel_digest import PACKAGES_WITH_KERNELS, folder_of_package, kernel_digest
from streams.log.control import (
    CONTROL_RECORDS,
    ConstraintsOn,
    ControlRecord,
    OperatorOff,
    OperatorOn,
    OperatorPause,
    PatternOff,
    PatternOn,
    PatternPause,
    Punctuation,
    Start,
    StreamOn,
    Tick,
    TickCause,
    TraceEnd,
    decode_control,
    encode_control,
)
from streams.log.operators import Definition, Input
from streams.log.records import LAYOUT_KEY, LogEntry, RecordKind, log_key, position_order
from streams.log.scripts import Script, ScriptInput, ScriptValue, read_script
from streams.nearest import did_you_mean, listed, nearest
from streams.reordering import NEVER_US, ReorderBuffer
from streams.showing import shown
from streams.timestamps import EARLIEST_US, LATEST_US, format_time, parse_time
from streams.work_budget import MOST_EVENTS, MOST_TRACES, MOST_WORK, USUAL_BUDGET, WorkBudget

__all__ = [
    "CONTROL_RECORDS",
    "EARLIEST_US",
    "LATEST_US",
    "LAYOUT_KEY",
    "MAX_SHARDS",
    "MOST_EVENTS",
    "MOST_TRACES",
    "MOST_WORK",
    "NEVER_US",
    "PACKAGES_WITH_KERNELS",
    "USUAL_BUDGET",
    "BatchFormatError",
    "Clock",
    "ConstraintsOn",
    "ControlRecord",
    "ControlRecordError",
    "DeclarationError",
    "Definition",
    "Detail",
    "Duplicates",
    "Event",
    "EventBatch",
    "EventBreaksSchema",
    "EventFileError",
    "EventRejected",
    "Fault",
    "FieldMapping",
    "ForestallError",
    "Input",
    "KeptFolderRefused",
    "Late",
    "LogEntry",
    "OperatorOff",
    "OperatorOn",
    "OperatorPause",
    "ParsedEvents",
    "PatternOff",
    "PatternOn",
    "PatternPause",
    "Punctuation",
    "RaggedOrder",
    "RecordKind",
    "ReorderBuffer",
    "Script",
    "ScriptInput",
    "ScriptValue",
    "Start",
    "StreamDeclaration",
    "StreamError",
    "StreamOn",
    "SystemClock",
    "Texts",
    "Tick",
    "TickCause",
    "Ties",
    "TraceEnd",
    "WorkBudget",
    "ascending_words",
    "borders_of",
    "bytes_of",
    "check_extent",
    "chosen_texts",
    "column_of",
    "decode_control",
    "did_you_mean",
    "encode_control",
    "fixed_texts",
    "flag_texts",
    "folder_of_package",
    "format_time",
    "joined_texts",
    "json_contents",
    "json_text",
    "kept_folder",
    "kept_top",
    "kernel_digest",
    "key_hash",
    "key_of",
    "lines_of",
    "listed",
    "log_key",
    "make_kept_folder",
    "name_fault",
    "nearest",
    "note_use",
    "numbers_of",
    "parse_cloudevent",
    "parse_columns",
    "parse_each",
    "parse_plain",
    "parse_time",
    "pieces_of",
    "position_order",
    "ragged_order",
    "ragged_places",
    "read_script",
    "render_cloudevent",
    "render_plain",
    "require_trusted",
    "run_texts",
    "shard_of",
    "shown",
    "texts_of",
    "time_column",
    "time_texts",
]
