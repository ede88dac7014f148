"""``forestall.match`` over Spark DataFrames: a partition holds whole transactions, and one task matches a partition.

Rules are sent to tasks as plain JSON. If there is a Spark DataFrame, Spark is already imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import orjson
import pyarrow as pa

from forestall.calls import Matching
from forestall.errors import FrameRefused
from forestall.match_columns import MatchForm
from forestall.match_result import MatchResult
from forestall.reading import ColumnNames, kinds_in
from forestall.row_columns import OUTPUTS, table_of_results, table_of_rows
from nfa import Prune, parse_patterns
from service import RunRules, StreamReport, StreamRun, exercises_of
from streams import OTHER_TYPES, StreamDeclaration
from streams.compiling import compile_kernels
from streams.readers import ReaderOptions, batch_of_table, columns_read

_KEY = "_forestall_key"
_STATS = pa.schema([("name", pa.string()), ("count", pa.int64())])
_DDL: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_string, "string"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float64, "double"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_timestamp, "timestamp"),
)
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, kw_only=True)
class SparkMatchResult(MatchResult[Any]):
    """The results of a run on Spark. Each list is a DataFrame that Spark computes lazily."""

    events: Any = field(repr=False)
    form: MatchForm = field(repr=False)
    rules: bytes = field(repr=False)

    @property
    def stats(self) -> Mapping[str, int]:
        """The counts of ``forestall match``, added up over all partitions. Reading them runs a Spark job."""
        rows = (
            self.events.mapInArrow(partial(_counted, self.rules), _ddl(_STATS)).groupBy("name").sum("count").collect()
        )
        return {row[0]: row[1] for row in rows}

    def _frame(self, output: str) -> Any:
        schema = _empty(output, self.form).schema
        return self.events.mapInArrow(partial(_matched, self.rules, output), _ddl(schema))


def match_on_spark(events: Any, matching: Matching) -> SparkMatchResult:
    """Match the events of a Spark DataFrame, partitioned by key.

    Raises:
        FrameRefused: The stream has several keys, but partitions need a single key. Or patterns read tables.
    """
    rules = matching.rules
    options, column_names = matching.names.options(rules.declaration), events.columns
    if rules.declaration.keys:
        raise FrameRefused("events of Spark are partitioned by one key; leave out the further keys of the stream")
    if rules.tables.versions:
        raise FrameRefused("reference tables are not sent to the machines of Spark; join their columns to the events")
    selected = events.select(*columns_read(column_names, options, rules.read))
    empty, event = _types(selected).empty_table(), pa.string()
    if not options.columns.ids and "id" not in column_names:
        selected, event = selected.selectExpr("*", "monotonically_increasing_id() AS id"), pa.int64()
    compile_kernels(exercises_of(rules.plan))
    return SparkMatchResult(
        events=_by_key(selected, options),
        form=MatchForm.of(rules.patterns, kinds_in(batch_of_table(empty, options, rules.read), rules), event),
        rules=_written(matching, event),
        outputs=matching.outputs,
        notices=matching.notices,
    )


def _types(events: Any) -> pa.Schema:
    """Return the Arrow schema of a Spark DataFrame, without a Spark job."""
    schema: pa.Schema = import_module("pyspark.sql.pandas.types").to_arrow_schema(events.schema, timezone="UTC")
    return schema


def _by_key(events: Any, options: ReaderOptions) -> Any:
    key = options.key or "key"
    if not isinstance(key, Mapping):
        return events.repartition(key)
    types = _quoted(options.columns.type or "type")
    cases = [
        f"WHEN {types} = {_text(kind)} THEN {_quoted(place)}" for kind, place in key.items() if kind != OTHER_TYPES
    ]
    other_column = _quoted(key[OTHER_TYPES]) if OTHER_TYPES in key else "NULL"
    key_column = f"CASE {' '.join(cases)} ELSE {other_column} END" if cases else other_column
    return events.selectExpr("*", f"{key_column} AS {_KEY}").repartition(_KEY).drop(_KEY)


def _quoted(place: str) -> str:
    """Return SQL that reads a value as text. ``place`` is a column, or a member of a struct: ``column.member``."""
    parts = (f"`{part.replace('`', '``')}`" for part in place.split("."))
    return f"CAST({'.'.join(parts)} AS STRING)"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _written(matching: Matching, event: pa.DataType) -> bytes:
    rules, document = matching.rules, None
    if rules.own is not None:
        from constraints import to_document  # noqa: PLC0415 - most calls need none

        document = to_document(rules.own)
    written = {
        "patterns": [pattern.text for pattern in rules.patterns],
        "stream": rules.declaration.to_json(),
        "constraints": document,
        "prune": rules.prune,
        "is_open": rules.is_open,
        "names": asdict(matching.names),
        "has_numbers": event == pa.int64(),
        "read": None if rules.read is None else sorted(rules.read),
    }
    return orjson.dumps(written)


@lru_cache(maxsize=16)
def _rules(written: bytes) -> tuple[RunRules, ColumnNames, list[str] | None, pa.DataType]:
    """Decode the rules of a call in a Spark task. A Python worker keeps them for its next partitions."""
    call = orjson.loads(written)
    constraint_set = None
    if call["constraints"] is not None:
        from constraints import parse_constraints  # noqa: PLC0415 - most calls need none

        constraint_set = parse_constraints(call["constraints"]).constraint_set
    rules = RunRules(
        patterns=[pattern for text in call["patterns"] for pattern in parse_patterns(text)],
        declaration=StreamDeclaration.from_json(call["stream"]),
        own=constraint_set,
        prune=None if call["prune"] is None else Prune(call["prune"]),
        is_open=call["is_open"],
    )
    event = pa.int64() if call["has_numbers"] else pa.string()
    return rules, ColumnNames(**call["names"]), call["read"], event


def _report(written: bytes, lists: list[str], batches: Batches) -> tuple[StreamReport, MatchForm] | None:
    rules, names, read, event = _rules(written)
    parts = list(batches)
    if not sum(map(len, parts)):
        return None
    options = names.options(rules.declaration)
    if event == pa.int64():  # Spark generated the ids, without repetitions
        options = replace(options, duplicates="keep")
    batch = batch_of_table(pa.Table.from_batches(parts), options, read, is_compact=True)
    run = StreamRun(rules.plan, lists=lists)
    run.feed(batch)
    return run.report(is_open=rules.is_open), MatchForm.of(rules.patterns, kinds_in(batch, rules), event)


def _matched(written: bytes, output: str, batches: Batches) -> Batches:
    report_and_form = _report(written, [OUTPUTS[output]], batches)
    if report_and_form is not None:
        yield from table_of_results(report_and_form[0], output, report_and_form[1]).to_batches()


def _counted(written: bytes, batches: Batches) -> Batches:
    report_and_form = _report(written, [], batches)
    if report_and_form is not None:
        counts = asdict(report_and_form[0].stats)
        yield pa.record_batch([list(counts), list(counts.values())], schema=_STATS)


def _empty(output: str, form: MatchForm) -> pa.Table:
    return form.schema.empty_table() if output == "matches" else table_of_rows([], OUTPUTS[output], form)


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name.replace('`', '``')}` {_ddl_type(field.type)}" for field in schema)


def _ddl_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_ddl_type(kind.value_type)}>"
    return next(name for test, name in _DDL if test(kind))
