"""One stream within one shard: its declaration, its matcher, the constraint documents that traces still follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pyarrow as pa

from nfa import (
    MATCH_LIMIT,
    Correction,
    Deviation,
    Ending,
    Match,
    Matcher,
    MatcherStats,
    Overflow,
    Pattern,
    Query,
    Timeout,
    atoms_of,
    describe_atom,
    parse_pattern,
)
from pipeline.entries import Entry
from pipeline.errors import MatchLimitReached, PipelineError, RunLimitReached
from pipeline.rows import RowKind, alert_id, dead_letter_body, row_id
from pipeline.rules import Rules, rules_of
from streams import (
    EARLIEST_US,
    LATEST_US,
    BatchFormatError,
    ConstraintsOn,
    ControlRecordError,
    EventBatch,
    PatternOff,
    PatternOn,
    StreamDeclaration,
    format_time,
)

_SCHEMA = EventBatch.from_events([]).columns.schema

Finding = tuple[RowKind, str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """One version of a stream's constraints."""

    name: str
    document: Any
    rules: Rules


class StreamState:
    """Applies what the log says about one stream; findings are (kind, id, JSON object).

    Args:
        declaration: As the log said last.
        matcher: The state of the stream's traces.
        versions: Constraints by version: the newest, and those that open traces follow.
    """

    def __init__(self, declaration: StreamDeclaration, matcher: Matcher, versions: Mapping[int, _Version]) -> None:
        self._declaration = declaration
        self._matcher = matcher
        self._versions = dict(versions)

    @classmethod
    def declared(cls, declaration: StreamDeclaration) -> StreamState:
        """A new stream."""
        matcher = Matcher(end_events=declaration.end_events, ties=declaration.ties, key_paths=declaration.key_paths)
        return cls(declaration, matcher, {})

    @property
    def declaration(self) -> StreamDeclaration:
        """As the log said last."""
        return self._declaration

    @property
    def stats(self) -> MatcherStats:
        """Counts of the stream's matcher."""
        return self._matcher.stats

    def declare(self, declaration: StreamDeclaration) -> None:
        """Take a later declaration of the same stream.

        Raises:
            ControlRecordError: Its key, end events or ties differ: open traces would have to be re-read.
        """
        known = self._declaration
        changed = {
            "key": declaration.key != known.key,
            "end_events": set(declaration.end_events) != set(known.end_events),
            "ties": declaration.ties != known.ties,
        }
        for name, has_changed in changed.items():
            if has_changed:
                raise ControlRecordError(
                    f"stream {declaration.name!r}: the {name.replace('_', ' ')} of a declared stream cannot change",
                    field=name,
                )
        self._declaration = declaration

    def switch_pattern(self, record: PatternOn | PatternOff) -> None:
        """Start or stop a pattern; a version that is running already goes on.

        Raises:
            PatternError: The text is refused, or no such pattern runs.
            ControlRecordError: The text names its pattern otherwise than the record does.
        """
        if isinstance(record, PatternOff):
            self._matcher.remove_pattern(record.name)
            return
        running = self._matcher.patterns.get(record.name)
        if running is not None and (running.version, running.text) == (record.version, record.text):
            return
        named = parse_pattern(record.text).name
        if named != record.name:
            raise ControlRecordError(f"pattern-on record: pattern {record.name!r} calls itself {named!r} in its text")
        self._matcher.add_pattern(record.text, version=record.version, is_guarded=record.is_guarded)

    def follow(self, record: ConstraintsOn) -> None:
        """Let traces that begin later follow these constraints.

        Raises:
            ConstraintError: The document is refused.
            ControlRecordError: The version was taken by another document.
        """
        known = self._versions.get(record.version)
        if known is not None and known.document != record.document:
            raise ControlRecordError(
                f"constraints-on record: version {record.version} of stream {self._declaration.name!r} "
                "is another document"
            )
        rules = rules_of(record.document, self._declaration.ties)
        self._matcher.set_guard(record.version, rules.monitor)
        self._versions[record.version] = _Version(name=record.name, document=record.document, rules=rules)

    def process(self, shard: int, entry: Entry) -> Iterator[Finding]:
        """Match the encoded batch of an entry.

        Args:
            shard: Where the entry is.
            entry: Its body is the batch.

        Raises:
            BatchFormatError: The bytes are not a batch that can be matched; nothing has changed then.
        """
        output = self._matcher.process(decode_batch(entry.body))
        yield from map(self._alert, output.matches())
        yield from map(self._timeout, output.timeouts())
        yield from map(self._ending, output.endings())
        yield from map(self._deviation, output.deviations())
        yield from map(self._correction, output.corrections())
        for overflow in _summed(output.overflows()):
            for loss in self._losses(overflow):
                yield self._loss(shard, entry, overflow, loss)

    def dump(self) -> tuple[dict[str, Any], bytes]:
        """The state as a JSON object and the matcher's bytes; constraints that nothing follows are left out."""
        in_use = self._matcher.guard_versions_in_use
        self._versions = {number: version for number, version in self._versions.items() if number in in_use}
        head = {
            "declaration": self._declaration.to_json(),
            "constraints": [
                {"version": number, "name": version.name, "document": version.document}
                for number, version in sorted(self._versions.items())
            ],
        }
        return head, self._matcher.dump()

    @classmethod
    def load(cls, head: Mapping[str, Any], matcher: bytes) -> StreamState:
        """The state that ``dump`` returned.

        Raises:
            ForestallError: A part cannot be read.
        """
        declaration = StreamDeclaration.from_json(head["declaration"])
        versions = {
            saved["version"]: _Version(
                name=saved["name"], document=saved["document"], rules=rules_of(saved["document"], declaration.ties)
            )
            for saved in head["constraints"]
        }
        monitors = {number: version.rules.monitor for number, version in versions.items()}
        return cls(declaration, Matcher.load(matcher, monitors), versions)

    def _alert(self, match: Match) -> Finding:
        name = self._declaration.name
        identity = alert_id(name, match.pattern, match.version, match.key, match.bindings)
        body = {
            "type": RowKind.ALERT.value,
            "id": identity,
            "stream": name,
            "pattern": match.pattern,
            "version": match.version,
            "key": match.key,
            "start": format_time(match.start_us),
            "end": format_time(match.end_us),
            "detected_at": format_time(match.detected_us),
            "bindings": match.bindings,
            "returns": match.returns,
            "why": _why(self._query(match.pattern).pattern, match.bindings),
            **({} if match.decided_by is None else {"decided_by": match.decided_by}),
            **({"deviating": True} if match.deviating else {}),
            **({"would_be_lost": True} if match.would_be_lost else {}),
        }
        return RowKind.ALERT, identity, body

    def _correction(self, correction: Correction) -> Finding:
        name = self._declaration.name
        bindings = {alias: list(ids) for alias, ids in correction.bindings.items()}
        alert = alert_id(name, correction.pattern, correction.version, correction.key, bindings)
        identity = row_id(RowKind.CORRECTION, alert, correction.event_id)
        body = {
            "type": RowKind.CORRECTION.value,
            "id": identity,
            "stream": name,
            "pattern": correction.pattern,
            "version": correction.version,
            "key": correction.key,
            "alert": alert,
            "bindings": bindings,
            "event": correction.event_id,
            "event_type": correction.event_type,
            "time": format_time(correction.time_us),
            "reason": f"{correction.event_type} must not follow, and was told to be impossible when the alert was sent",
        }
        return RowKind.CORRECTION, identity, body

    def _timeout(self, timeout: Timeout) -> Finding:
        name = self._declaration.name
        bindings = {alias: list(ids) for alias, ids in timeout.bindings.items()}
        parts = (name, timeout.pattern, timeout.version, timeout.key, bindings, timeout.due_us)
        identity = row_id(RowKind.TIMEOUT, *parts)
        body = {
            "id": identity,
            "stream": name,
            "pattern": timeout.pattern,
            "version": timeout.version,
            "key": timeout.key,
            "start": format_time(timeout.start_us),
            "due": format_time(timeout.due_us),
            "bindings": bindings,
            "missing": timeout.missing,
        }
        return RowKind.TIMEOUT, identity, body

    def _ending(self, ending: Ending) -> Finding:
        name = self._declaration.name
        identity = row_id(RowKind.ENDING, name, ending.pattern, ending.version, ending.key, ending.event_id)
        why = self._versions[ending.guard_version].rules.explain(self._query(ending.pattern), ending)
        body = {
            "id": identity,
            "stream": name,
            "pattern": ending.pattern,
            "version": ending.version,
            "key": ending.key,
            "event": ending.event_id,
            "event_type": ending.event_type,
            "time": format_time(ending.time_us),
            "form": why.form,
            "constraints": [str(constraint) for constraint in why.constraints],
            "atom": describe_atom(why.atom) if why.atoms else f"NOT {describe_atom(why.atom)}",
            "reason": why.text,
        }
        return RowKind.ENDING, identity, body

    def _deviation(self, deviation: Deviation) -> Finding:
        name = self._declaration.name
        identity = row_id(RowKind.DEVIATION, name, deviation.key, deviation.event_id)
        why = self._versions[deviation.guard_version].rules.explain_deviation(deviation)
        body = {
            "type": RowKind.DEVIATION.value,
            "id": identity,
            "stream": name,
            "key": deviation.key,
            "event": deviation.event_id,
            "event_type": deviation.event_type,
            "time": format_time(deviation.time_us),
            "version": deviation.guard_version,
            "kind": why.kind,
            "constraints": [str(part) for part in why.constraints],
            "symbols": sorted(deviation.event.symbols),
            "allowed": list(why.allowed),
            "released": deviation.released,
            "reason": why.text,
        }
        return RowKind.DEVIATION, identity, body

    def _losses(self, overflow: Overflow) -> Iterator[PipelineError]:
        """What was lost, in words: an alert that is not told has to be told of."""
        pattern = self._query(overflow.pattern).pattern
        what = f"the pattern {overflow.pattern!r} (version {overflow.version}) {_place_of(overflow)}"
        advice = "conditions or a window in the pattern make them fewer"
        if overflow.dropped:
            limit = MATCH_LIMIT if pattern.limit is None else pattern.limit
            yield MatchLimitReached(
                f"{overflow.dropped:,} matches of {what} were beyond the limit of {limit:,} per event and gave no "
                f"alerts; {advice}"
            )
        if overflow.runs:
            yield RunLimitReached(
                f"{overflow.runs:,} partial matches of {what} were beyond what a trace may hold, so that alerts may "
                f"be missing; {advice}"
            )

    def _loss(self, shard: int, entry: Entry, overflow: Overflow, error: PipelineError) -> Finding:
        parts = (overflow.pattern, overflow.version, overflow.key, overflow.event_id, overflow.time_us)
        is_of_runs = isinstance(error, RunLimitReached)
        body = dead_letter_body(shard, entry, error, *parts, *([error.code] if is_of_runs else []))
        return RowKind.DEAD_LETTER, body["id"], body

    def _query(self, pattern: str) -> Query:
        return self._matcher.patterns[pattern].query


def decode_batch(body: bytes) -> EventBatch:
    """An encoded batch, checked so far that no value in it can harm the matcher.

    Raises:
        BatchFormatError: It is damaged, of another version, or has other columns, nulls, a type twice in its
            dictionary, invalid text, attributes that are no JSON or times that cannot be written.
    """
    batch = EventBatch.from_bytes(body)
    columns = batch.columns
    if not columns.schema.equals(_SCHEMA):
        raise BatchFormatError(f"a batch has columns {columns.schema.names} of other types than {_SCHEMA.names}")
    try:
        columns.validate(full=True)
    except pa.ArrowInvalid as error:
        raise BatchFormatError(f"a batch holds invalid values: {error}") from error
    if holes := [name for name in columns.schema.names if columns.column(name).null_count]:
        raise BatchFormatError(f"a batch has nulls in {', '.join(holes)}")
    types = columns.column("type").dictionary
    if types.null_count:
        raise BatchFormatError("a batch has a null in the dictionary of its types")
    if len(types.unique()) != len(types):
        raise BatchFormatError("a batch has a type twice in the dictionary of its types")
    times_us = batch.time_us
    if strangers := times_us[(times_us < EARLIEST_US) | (times_us > LATEST_US)].tolist():
        raise BatchFormatError(f"a batch holds the time {strangers[0]} us, which is outside the years 1 to 9999")
    _check_attributes(columns.column("data"))
    return batch


def _check_attributes(column: pa.Array) -> None:
    """Patterns read attributes here and there while they match; a failure there would leave the state half advanced."""
    try:
        for data in column.to_pylist():
            orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BatchFormatError(f"attributes of an event are not JSON: {error}") from error


def _summed(overflows: Iterable[Overflow]) -> list[Overflow]:
    """One per trace, event and pattern, in the order of their first."""
    found: dict[Overflow, tuple[int, int]] = {}
    for overflow in overflows:
        place = replace(overflow, dropped=0, runs=0)
        dropped, runs = found.get(place, (0, 0))
        found[place] = dropped + overflow.dropped, runs + overflow.runs
    return [replace(place, dropped=dropped, runs=runs) for place, (dropped, runs) in found.items()]


def _place_of(overflow: Overflow) -> str:
    if overflow.event_id:
        return f"in the trace {overflow.key!r} at the event {overflow.event_id!r} of type {overflow.event_type!r}"
    return f"in the trace {overflow.key!r} as time passed" if overflow.key else "as time passed"


def _why(pattern: Pattern, bindings: Mapping[str, tuple[str, ...]]) -> str:
    """The bound events, each with its step; where alternatives share an alias, with the steps of all of them."""
    steps: dict[str, dict[str, None]] = {}
    for atom in atoms_of(pattern.event):
        steps.setdefault(atom.alias, {})[describe_atom(atom)] = None
    return "; ".join(
        f"{', '.join(ids)} {'is' if len(ids) == 1 else 'are'} {' or '.join(steps[alias])}"
        for alias, ids in bindings.items()
    )
