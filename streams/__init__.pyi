"""Exports of the package; `__init__.py` loads each name at its first use."""

from .batch import ENDED as ENDED, RETRACTED as RETRACTED, EventBatch as EventBatch
from .clock import Clock as Clock, SystemClock as SystemClock
from .columns.arrow_columns import column_of as column_of, numbers_of as numbers_of, time_column as time_column
from .columns.growing import GrowingNumbers as GrowingNumbers, GrowingTexts as GrowingTexts
from .columns.json_columns import json_value as json_value
from .columns.ragged import (
    ascending_words as ascending_words,
    ragged_order as ragged_order,
    ragged_places as ragged_places,
)
from .columns.texts import (
    Texts as Texts,
    borders_of as borders_of,
    bytes_of as bytes_of,
    chosen_texts as chosen_texts,
    flag_texts as flag_texts,
    hex_texts as hex_texts,
    joined_texts as joined_texts,
    json_contents as json_contents,
    json_text as json_text,
    lines_of as lines_of,
    pieces_of as pieces_of,
    run_texts as run_texts,
    shown_texts as shown_texts,
    text_digests as text_digests,
    texts_of as texts_of,
    time_texts as time_texts,
)
from .columns.zeros import zeros_of as zeros_of
from .declaration import (
    CHANGEABLE as CHANGEABLE,
    ColumnType as ColumnType,
    Duplicates as Duplicates,
    FieldMapping as FieldMapping,
    StreamDeclaration as StreamDeclaration,
    Ties as Ties,
    name_fault as name_fault,
)
from .disorder import (
    BLOCK_EVENTS as BLOCK_EVENTS,
    Lags as Lags,
    LatenessDecider as LatenessDecider,
    lateness_summary as lateness_summary,
)
from .documents import (
    NULL_TAG as NULL_TAG,
    TEXT_TAG as TEXT_TAG,
    Bare as Bare,
    DocumentPath as DocumentPath,
    UnreadableText as UnreadableText,
    WrittenDocument as WrittenDocument,
    child_node as child_node,
    composed as composed,
    decoded_text as decoded_text,
    line_of as line_of,
    plain_value as plain_value,
    read_document as read_document,
)
from .durations import (
    NAMED_UNITS_US as NAMED_UNITS_US,
    UNITS_US as UNITS_US,
    duration_of as duration_of,
    duration_text as duration_text,
    seconds_in as seconds_in,
)
from .errors import (
    BatchFormatError as BatchFormatError,
    ControlRecordError as ControlRecordError,
    DeclarationError as DeclarationError,
    Detail as Detail,
    EventAhead as EventAhead,
    EventBreaksSchema as EventBreaksSchema,
    EventFileError as EventFileError,
    EventRejected as EventRejected,
    ForestallError as ForestallError,
    KeptFolderRefused as KeptFolderRefused,
    StateLost as StateLost,
)
from .event import Event as Event
from .event_time import (
    AUTO as AUTO,
    AutoLateness as AutoLateness,
    Late as Late,
    Lateness as Lateness,
    MaxAhead as MaxAhead,
    ahead_json as ahead_json,
    ahead_of as ahead_of,
    lateness_json as lateness_json,
    lateness_of as lateness_of,
)
from .forms.cloudevents import keyed_cloudevent as keyed_cloudevent, parse_cloudevent as parse_cloudevent
from .forms.column_parsing import parse_columns as parse_columns
from .forms.extent import check_extent as check_extent, decode_json as decode_json, has_long_integer as has_long_integer
from .forms.parsing import parse_each as parse_each
from .forms.plain import parse_plain as parse_plain, render_plain as render_plain
from .hashing import (
    EVERY_KEY as EVERY_KEY,
    MAX_SHARDS as MAX_SHARDS,
    key_hash as key_hash,
    key_of as key_of,
    shard_of as shard_of,
)
from .kept.folder import (
    kept_folder as kept_folder,
    make_kept_folder as make_kept_folder,
    note_use as note_use,
    require_trusted as require_trusted,
)
from .kept.kernel_digest import (
    PACKAGES_PREFIX as PACKAGES_PREFIX,
    folder_of_package as folder_of_package,
    kernel_digest as kernel_digest,
)
from .kept.replaced_files import replacing as replacing, sync_folder as sync_folder
from .kept.spilled_files import SpilledFiles as SpilledFiles
from .key_ranges import (
    GREATEST_NUMBER as GREATEST_NUMBER,
    KeyRange as KeyRange,
    LEAST_NUMBER as LEAST_NUMBER,
    whole_number as whole_number,
    whole_numbers as whole_numbers,
)
from .keys import (
    OTHER_TYPES as OTHER_TYPES,
    AttributePath as AttributePath,
    KeyForm as KeyForm,
    attribute_path as attribute_path,
    inner_value as inner_value,
    is_element as is_element,
    key_json as key_json,
    key_names as key_names,
    key_text as key_text,
    members_of as members_of,
    place_for as place_for,
    places_of as places_of,
)
from .log.control import (
    Ask as Ask,
    CONTROL_RECORDS as CONTROL_RECORDS,
    ClosedKeys as ClosedKeys,
    ConstraintsOn as ConstraintsOn,
    ControlRecord as ControlRecord,
    KeysClosed as KeysClosed,
    LatenessChange as LatenessChange,
    OperatorOff as OperatorOff,
    OperatorOn as OperatorOn,
    OperatorPause as OperatorPause,
    PatternOff as PatternOff,
    PatternOn as PatternOn,
    PatternPause as PatternPause,
    Punctuation as Punctuation,
    Start as Start,
    StreamOff as StreamOff,
    StreamOn as StreamOn,
    TableOff as TableOff,
    TableOn as TableOn,
    TableRow as TableRow,
    Tick as Tick,
    TraceEnd as TraceEnd,
    decode_control as decode_control,
    encode_control as encode_control,
)
from .log.records import Definition as Definition, Input as Input
from .log.records import (
    APPENDED_KEY as APPENDED_KEY,
    CLOSED_US as CLOSED_US,
    DERIVED_PROMISES_KEY as DERIVED_PROMISES_KEY,
    LAYOUT_KEY as LAYOUT_KEY,
    LogEntry as LogEntry,
    NOTED_KEY as NOTED_KEY,
    ROUTES_KEY as ROUTES_KEY,
    RecordKind as RecordKind,
    STREAMS_KEY as STREAMS_KEY,
    STREAM_TIMES_KEY as STREAM_TIMES_KEY,
    TASKS_JOB_KEY as TASKS_JOB_KEY,
    TASKS_OWNERS_KEY as TASKS_OWNERS_KEY,
    answers_key as answers_key,
    is_older as is_older,
    log_key as log_key,
    position_order as position_order,
    questions_key as questions_key,
    stops_key as stops_key,
)
from .log.scripts import ScriptInput as ScriptInput, ScriptValue as ScriptValue, read_script as read_script
from .nearest import (
    did_you_mean as did_you_mean,
    indefinite as indefinite,
    listed as listed,
    nearest as nearest,
    one_of as one_of,
)
from .reordering import NEVER_US as NEVER_US, ReorderBuffer as ReorderBuffer
from .showing import shown as shown
from .time_forms import LocalTimes as LocalTimes, TimeForm as TimeForm, TimeUnit as TimeUnit, zone_of as zone_of
from .timestamps import (
    EARLIEST_US as EARLIEST_US,
    LATEST_US as LATEST_US,
    format_time as format_time,
    parse_time as parse_time,
    shown_time as shown_time,
)
from .work_budget import (
    MOST_EVENTS as MOST_EVENTS,
    MOST_TRACES as MOST_TRACES,
    MOST_WORK as MOST_WORK,
    USUAL_BUDGET as USUAL_BUDGET,
    WorkBudget as WorkBudget,
)
