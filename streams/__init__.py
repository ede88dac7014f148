"""The event model, independent of any pattern.

Purpose: the external form of an event (CloudEvents or plain JSON), the internal form (a columnar batch), the
declaration of a stream, the records of the event log, event time, and the root of the error tree. Promises: values are
immutable, the order of rows is the order of the log, and nothing here knows who reads a batch.
"""

from streams.batch import ENDED, EventBatch
from streams.clock import Clock, SystemClock
from streams.columns.arrow_columns import column_of, numbers_of, time_column
from streams.columns.growing import GrowingNumbers, GrowingTexts
from streams.columns.ragged import RaggedOrder, ascending_words, ragged_order, ragged_places
from streams.columns.texts import (
    Texts,
    borders_of,
    bytes_of,
    chosen_texts,
    fixed_texts,
    flag_texts,
    hex_texts,
    joined_texts,
    json_contents,
    json_text,
    lines_of,
    pieces_of,
    run_texts,
    text_digests,
    texts_of,
    time_texts,
)
from streams.declaration import CHANGEABLE, ColumnType, Duplicates, FieldMapping, StreamDeclaration, Ties, name_fault
from streams.disorder import BLOCK_EVENTS, Lags, LatenessDecider, lateness_summary
from streams.durations import NAMED_UNITS_US, UNITS_US, duration_of, duration_text
from streams.errors import (
    BatchFormatError,
    ControlRecordError,
    DeclarationError,
    Detail,
    EventAhead,
    EventBreaksSchema,
    EventFileError,
    EventRejected,
    Fault,
    ForestallError,
    KeptFolderRefused,
    StateLost,
    StreamError,
)
from streams.event import Event
from streams.event_time import AUTO, AutoLateness, Late, Lateness, lateness_of
from streams.forms.cloudevents import keyed_cloudevent, parse_cloudevent, render_cloudevent
from streams.forms.column_parsing import parse_columns
from streams.forms.extent import check_extent, decode_json, has_long_integer
from streams.forms.parsing import ParsedEvents, parse_each
from streams.forms.plain import parse_plain, render_plain
from streams.hashing import EVERY_KEY, MAX_SHARDS, key_hash, key_of, shard_of
from streams.kept.folder import kept_folder, kept_top, make_kept_folder, note_use, require_trusted
from streams.kept.kernel_digest import folder_of_package, kernel_digest
from streams.kept.replaced_files import replacing, sync_folder
from streams.kept.spilled_files import SpilledFiles
from streams.key_ranges import GREATEST_NUMBER, LEAST_NUMBER, KeyRange, whole_number, whole_numbers
from streams.keys import (
    AttributePath,
    KeyForm,
    attribute_path,
    inner_value,
    is_element,
    key_form,
    key_json,
    key_names,
    key_text,
    members_of,
    place_for,
    places_of,
)
from streams.log.control import (
    CONTROL_RECORDS,
    Ask,
    ConstraintsOn,
    ControlRecord,
    LatenessChange,
    OperatorOff,
    OperatorOn,
    OperatorPause,
    PatternOff,
    PatternOn,
    PatternPause,
    Punctuation,
    Start,
    StreamOff,
    StreamOn,
    TableOff,
    TableOn,
    TableRow,
    Tick,
    TickCause,
    TraceEnd,
    decode_control,
    encode_control,
)
from streams.log.keys_closed import ClosedKeys, KeysClosed
from streams.log.operators import Definition, Input
from streams.log.records import (
    LAYOUT_KEY,
    NOTED_KEY,
    TASKS_JOB_KEY,
    TASKS_OWNERS_KEY,
    LogEntry,
    RecordKind,
    answers_key,
    log_key,
    position_order,
    questions_key,
    stops_key,
)
from streams.log.scripts import Script, ScriptInput, ScriptValue, read_script
from streams.nearest import did_you_mean, indefinite, listed, nearest, one_of
from streams.reordering import NEVER_US, ReorderBuffer
from streams.showing import shown
from streams.time_forms import DATE_ORDERS, LocalTimes, TimeForm, TimeUnit, zone_of
from streams.timestamps import EARLIEST_US, LATEST_US, format_time, parse_time, shown_time
from streams.work_budget import MOST_EVENTS, MOST_TRACES, MOST_WORK, USUAL_BUDGET, WorkBudget
