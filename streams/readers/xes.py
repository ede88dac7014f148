"""Reads XES (IEEE 1849), which has traces of events in XML.

The correlation key is the trace's ``concept:name``; traces with the same name are one trace. The event type is the
event's ``concept:name``, and its time is ``time:timestamp``. Its id is ``<case>:<n>``: the n-th event, from 1, of its
case in the file. With a classifier of the log, the event type consists of the values of the classifier's attributes,
joined by ``+``.

Scalar attributes of the event keep their XES keys: strings and ids as text, numbers, booleans, and dates as RFC 3339 in
UTC (as written, if they are not RFC 3339). NaN and infinities become null, because JSON lacks them. Numbers that are
empty or malformed become null too, and are counted. Trace attributes, nested attributes, lists and containers are
ignored.

Entities, document types and external references are rejected. Apart from the result, memory is bounded by the largest
trace.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse

from streams.errors import EventFileError, EventRejected
from streams.event import Event
from streams.keys import require_place
from streams.nearest import listed
from streams.readers.assembling import Assembly, attribute_name
from streams.readers.options import ReaderOptions
from streams.showing import shown
from streams.timestamps import format_time, parse_rfc3339

CASE_NAME = "concept:name"
_TIME = "time:timestamp"
_TRANSITION = "lifecycle:transition"
_TRACE_DEPTH = 2

_Scalar: TypeAlias = str | int | float | bool | None
Attributes: TypeAlias = Mapping[str, tuple[str, str]]
"""Attributes by their XES keys, each as the name of its element and the value as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace of an XES log, not checked. ``number`` counts from 1.

    ``classifiers`` have the names declared before it.
    """

    number: int
    attributes: Attributes
    events: tuple[Attributes, ...]
    classifiers: Mapping[str, tuple[str, ...]]


def read_xes(stream: io.BufferedReader, path: Path, options: ReaderOptions) -> list[Event]:
    """Read the events of an XES log by time. Ties stay in file order.

    Raises ``EventFileError`` if the file is not XES, or if traces or events lack required attributes.
    """
    refuse_columns(path, options)
    assembly = Assembly(path, options)
    for trace in iterate_traces(stream, path):
        keys = type_keys(trace, options)
        case = trace.attributes.get(CASE_NAME, ("", ""))[1]
        if not case:
            assembly.refuse(f"trace {trace.number}", f"no {CASE_NAME}; a trace needs one, as the name of its case")
            continue
        for number, attributes in enumerate(trace.events, start=1):
            try:
                assembly.take_numbered(read_event(case, attributes, assembly, options, keys))
            except EventRejected as error:
                assembly.refuse(f"trace {trace.number} ({shown(case)}), event {number}", error)
    return assembly.finish()


def refuse_columns(path: Path, options: ReaderOptions) -> None:
    """Reject options that name columns, because an XES file has no columns."""
    columns = options.columns
    column_options = {
        "--id": columns.id,
        "--type": columns.type,
        "--time": columns.time,
        "--attributes": columns.attributes,
    }
    if refused := [option for option, value in column_options.items() if value is not None]:
        raise EventFileError(
            f"{path}: XES defines id, type, time and attributes of events; remove {listed(refused)}",
            file=str(path),
        )


def type_keys(trace: Trace, options: ReaderOptions) -> tuple[str, ...]:
    """Return the attributes that make up the event types of a trace. An unknown classifier is rejected."""
    if options.classifier is None:
        return (CASE_NAME,)
    if options.classifier not in trace.classifiers:
        alternatives = f"; it has {listed(list(trace.classifiers))}" if trace.classifiers else ", nor any other"
        raise EventFileError(f"--classifier: the log has no classifier {options.classifier!r}{alternatives}")
    return trace.classifiers[options.classifier]


def read_event(
    case: str, attributes: Attributes, assembly: Assembly, options: ReaderOptions, keys: Sequence[str]
) -> Event:
    """Read the event of an XES element. Its type joins the values of the attributes ``keys`` with ``+``.

    ``case`` is the name of its trace, which is also its correlation key, unless the options name another one.
    """
    event_id = assembly.next_id(case)
    time_us = assembly.next_time_us(
        attributes[_TIME][1] if _TIME in attributes else None, f"give the event a date {_TIME}"
    )
    parts = [attributes.get(name, ("", ""))[1] for name in keys]
    if not all(parts):
        name = keys[parts.index("")]
        advice = "" if options.classifier is not None else ", or a classifier of the log (--classifier)"
        raise EventRejected(f"no {name}; an event needs one, as its type{advice}", field=name)
    event_type = "+".join(parts)
    if options.lifecycle and _TRANSITION in attributes:
        event_type = f"{event_type}+{attributes[_TRANSITION][1]}"
    key = case
    if options.key is not None:
        name = require_place(options.key, event_type)
        key = attributes.get(attribute_name(name, attributes), ("", ""))[1]
        if not key:
            raise EventRejected(f"no attribute {name}, which was named as the correlation key", field=name)
    data = {
        name: _read_value(name, kind, value, assembly) for name, (kind, value) in attributes.items() if kind in _SCALARS
    }
    return Event(id=event_id, type=event_type, time_us=time_us, key=key, data=data)


def iterate_traces(stream: io.BufferedReader, path: Path) -> Iterator[Trace]:
    """Yield the traces of a log as written. Raises ``EventFileError`` at the first place that is not XES."""
    try:
        yield from _parse_traces(stream, path)
    except ParseError as error:
        line, column = error.position
        raise EventFileError(
            f"{path}: line {line}, column {column + 1}: not XML: {error.msg}", file=str(path)
        ) from error
    except DefusedXmlException as error:
        raise EventFileError(
            f"{path}: has a document type or entities, which are refused; remove the DOCTYPE", file=str(path)
        ) from error
    except (LookupError, ValueError) as error:
        raise EventFileError(f"{path}: the XML has an unknown encoding: {error}; use UTF-8", file=str(path)) from error


def _parse_traces(stream: io.BufferedReader, path: Path) -> Iterator[Trace]:
    steps = iterparse(stream, ("start", "end"), forbid_dtd=True)
    root = _check_root(next(steps)[1], path)
    depth = 1
    traces = 0
    events: list[Attributes] = []
    classifiers: dict[str, tuple[str, ...]] = {}
    for kind, element in steps:
        if kind == "start":
            depth += 1
            continue
        depth -= 1
        if depth == _TRACE_DEPTH and _local_name(element) == "event":
            events.append(_read_attributes(element))
            element.clear()
        elif depth == 1:
            if _local_name(element) == "trace":
                traces += 1
                attributes = _read_attributes(element)
                yield Trace(number=traces, attributes=attributes, events=tuple(events), classifiers=classifiers)
            elif _local_name(element) == "classifier" and element.get("scope", "event") == "event":
                classifiers[element.get("name", "")] = _classifier_keys(element.get("keys", ""))
            elif _local_name(element) == "event":
                raise EventFileError(
                    f"{path}: has events outside of traces; put every event into a trace", file=str(path)
                )
            events = []
            root.clear()


def _classifier_keys(written: str) -> tuple[str, ...]:
    """Split the attribute names of a classifier at blanks. A name with blanks is in quotes."""
    return tuple(quoted or plain for quoted, plain in re.findall(r"'([^']*)'|(\S+)", written))


def _check_root(element: Element, path: Path) -> Element:
    if _local_name(element) != "log":
        raise EventFileError(f"{path}: is not XES: its root is <{_local_name(element)}>, not <log>", file=str(path))
    return element


def _read_attributes(element: Element) -> Attributes:
    return {
        child.attrib["key"]: (_local_name(child), child.attrib.get("value", ""))
        for child in element
        if "key" in child.attrib
    }


def _local_name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _read_value(name: str, kind: str, value: str, assembly: Assembly) -> _Scalar:
    try:
        return _SCALARS[kind](value)
    except ValueError as error:
        if kind in _NUMBERS and not _WHOLE.fullmatch(value.strip()):
            assembly.note_missing(name)
            return None
        raise EventRejected(f"attribute {name}: {shown(value)} is not of the type {kind}", field=name) from error


def _read_integer(value: str) -> int:
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number} is outside 64 bits")
    return number


def _read_float(value: str) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _read_boolean(value: str) -> bool:
    if value.strip().lower() in ("true", "1"):
        return True
    if value.strip().lower() in ("false", "0"):
        return False
    raise ValueError(value)


def _read_date(value: str) -> str:
    try:
        return format_time(parse_rfc3339(value))
    except EventRejected:
        return value


_NUMBERS = frozenset({"int", "float"})
_WHOLE = re.compile(r"[-+]?[0-9]+")  # beyond 64 bits: rejected, as in other formats
_SCALARS: Mapping[str, Callable[[str], _Scalar]] = {
    "string": str,
    "id": str,
    "int": _read_integer,
    "float": _read_float,
    "boolean": _read_boolean,
    "date": _read_date,
}
