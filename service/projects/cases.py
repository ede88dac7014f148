"""Tests of a project: events, and the results that are expected from them.

Events may have the short form of ``docs/semantics.md``: ``B3`` is an event of type B at 3 s whose id is ``B3``, ``B3'``
is another event at the same time, and ``B3:5`` has the attribute ``v`` = 5. Results also have a short form:
``lost r=B3 c=C4`` is an alert of the pattern ``lost`` with ``r`` bound to ``B3`` and ``c`` to ``C4``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from service.projects.documents import Document
from service.projects.local import LocalProject
from service.projects.promises import read_promise
from service.runs import EVENTS, LISTS, OLD_LISTS, SUSPENSIONS, row_text
from shards import DOCUMENT_KINDS
from streams import (
    Event,
    EventBatch,
    EventRejected,
    ForestallError,
    Punctuation,
    check_extent,
    did_you_mean,
    one_of,
    parse_plain,
    parse_time,
)
from streams.readers import read_batch, reading_of

_EVENT = re.compile(r"([^\W\d]\w*?)(\d+)('*)(?::(\S+))?")
_SECOND_US = 1_000_000
_KEY = "k"
_LATEST_S = 253_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A test of a project: events, and the expected results of the operators named in ``patterns``.

    If ``patterns`` is empty, the results of all operators are compared. Each item of ``promises`` has a stream and a
    range of finished keys. If ``is_open``, transactions continue after the last event. Otherwise, they end with it.
    """

    name: str
    document: Document
    events: Mapping[str, EventBatch]
    promises: Sequence[tuple[str, Punctuation]]
    patterns: Sequence[str]
    is_open: bool
    expected: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a test. ``found`` has the actual results as lines, for each list of results that the test names.

    ``suspensions`` are the reasons of suspended operators, whose results are incomplete. ``is_right`` is True if all
    results are as expected and no operator was suspended.
    """

    case: Case
    found: Mapping[str, Sequence[str]]
    suspensions: Sequence[str]
    is_right: bool
    seconds: float

    def side_by_side(self) -> list[str]:
        """Return lines for users that show each expected result beside the actual result.

        A mark precedes lines that differ. The reasons of suspensions are first.
        """
        lines = [f"! {reason}" for reason in self.suspensions]
        for name in self.case.expected:
            pairs = list(_paired(self.case.expected[name], self.found[name]))
            width = max((len(left) for left, _ in pairs), default=0)
            width = max(width, len("expected"))
            lines.append(f"{name}:")
            lines.append(f"    {'expected'.ljust(width)}   found")
            for left, right in pairs:
                mark = " " if _is_met(left, right) else "!"
                lines.append(f"  {mark} {left.ljust(width)}   {right}".rstrip())
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRun:
    """The results of running a test's events. ``lines`` has the results in each list, with one line for each result.

    ``suspensions`` has the reasons of suspended operators. If the test names operators, only these and their feeders
    count. For each stream, ``losses`` describes late events and dead letters in a sentence. For each operator,
    ``unkeyed`` has sentences about inputs whose events lack a usable key.
    """

    lines: dict[str, list[str]]
    suspensions: Sequence[str]
    losses: Mapping[str, str]
    unkeyed: Mapping[str, Sequence[str]]


def cases_of(documents: Sequence[Document], project: LocalProject) -> list[Case]:
    """Read the tests among documents, in order. Raises ``ProjectRefused`` for an invalid test."""
    return [_case(document, project) for document in documents if document.kind == "test"]


def run_case(case: Case, project: LocalProject) -> CaseRun:
    """Run the events of a test. Returns the results, the losses and the events without a usable key."""
    inline_run = project.fed(case.events, promises=case.promises)
    results = inline_run.results(is_open=case.is_open)
    keys = {key for batch in case.events.values() for key in batch.columns.column("key").to_pylist()}
    short = short_ids(results[EVENTS])
    compared = {
        name: [body for body in results[name] if _is_compared(name, body, case, project)] for name in (*LISTS, EVENTS)
    }
    lines = {
        name: sorted(_tidy(line_of(body, short, has_keys=len(keys) > 1)) for body in compared[name]) for name in LISTS
    }
    lines[EVENTS] = sorted(event_lines(compared[EVENTS]))
    tested = project.with_sources(case.patterns)
    suspensions = [body["reason"] for body in results[SUSPENSIONS] if not case.patterns or body["pattern"] in tested]
    return CaseRun(lines=lines, suspensions=suspensions, losses=inline_run.losses, unkeyed=inline_run.unkeyed)


def _is_compared(name: str, result: Mapping[str, Any], case: Case, project: LocalProject) -> bool:
    """Return whether a test compares a result. A result that belongs to no operator is always compared."""
    if not case.patterns:
        return True
    if name == EVENTS:
        return result["stream"] in {project.feeds().get(operator) for operator in case.patterns}
    subject = LISTS[name].subject_of(result)
    return not subject or subject in case.patterns


def short_ids(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the short form of each derived event, by the id of the event.

    The short form is the type and the time in seconds, such as ``B3``.
    """
    return {event["id"]: f"{event['type']}{_seconds(event['time'])}" for event in events}


def event_lines(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each derived event, including retractions.

    The line has the stream, the key, the short form and the attributes of the event.
    """
    short = short_ids(events)
    for event in events:
        data = {name: short.get(value, value) if name == "retracts" else value for name, value in event["data"].items()}
        yield " ".join([event["stream"], f"[{event['key']}]", short[event["id"]], *sorted(words_of(data))])


def words_of(values: Mapping[str, Any]) -> list[str]:
    """Return pairs of name and value as words, such as ``total=5``."""
    return [
        f"{name}={value if isinstance(value, str) else orjson.dumps(value).decode()}" for name, value in values.items()
    ]


def outcome_of(case: Case, case_run: CaseRun, seconds: float) -> Outcome:
    """Compare the actual results of a test with the expected ones. ``seconds`` is the duration of the test."""
    compared = {name: case_run.lines[name] for name in case.expected}
    suspensions = case_run.suspensions
    is_right = not suspensions and all(
        all(_is_met(left, right) for left, right in _paired(case.expected[name], compared[name])) for name in compared
    )
    return Outcome(case=case, found=compared, suspensions=suspensions, is_right=is_right, seconds=seconds)


def expectation(lines: Mapping[str, Sequence[str]], case: Case) -> dict[str, list[str]]:
    """Return the expectation with which a test would pass. ``lines`` are the actual results by list.

    Only the lists that the test names are included.
    """
    return {name: list(lines[name]) for name in (*LISTS, EVENTS) if name in case.expected}


def line_of(body: Mapping[str, Any], short: Mapping[str, str], *, has_keys: bool) -> str:
    """Return a result as a line of words, in the form in which tests expect results.

    The words are the pattern, the key if ``has_keys``, and the bound events or the reason. A result without bound
    events and reason is shown with all its members. ``short`` maps event ids to their short forms.
    """
    if "bindings" not in body and "reason" not in body:
        return " ".join(words_of({name: value for name, value in body.items() if name != "stream"}))
    words = [str(body["pattern"])] if "pattern" in body else []
    words += [f"[{body['key']}]"] if has_keys else []
    words += [row_text(body)] if "row" in body else []
    if "bindings" in body:
        words += [
            f"{alias}={','.join(short.get(event_id, event_id) for event_id in ids)}"
            for alias, ids in sorted(body["bindings"].items())
        ]
    else:
        words += [f"{short.get(body['event'], body['event'])}: {' '.join(body['reason'].split())}"]
    return " ".join(words)


def _case(document: Document, project: LocalProject) -> Case:
    body = document.body
    if sum(member in body for member in ("events", "streams", "files")) != 1:
        raise document.refuse(
            "a test has either events, of one stream, or streams, with the events of each, or files, with the "
            "event file of each"
        )
    if "events" in body:
        place, written = "events", {_only_stream(document, project): body["events"]}
    elif "stream" in body:
        raise document.refuse("a test with streams names each in there; leave stream out", "stream")
    else:
        place = "streams" if "streams" in body else "files"
        written = body[place]
        for name in written:
            _check_stream(document, project, name, place)
    try:
        events = {name: _batch(document, project, name, written[name], place) for name in written}
        lists = body.get("expect", {}).items()
        expected = {OLD_LISTS.get(name, name): sorted(map(_tidy, lines)) for name, lines in lists}
    except ForestallError as error:
        raise document.refuse(error.message, place) from error
    for name in body.get("patterns", ()):
        if name not in project.feeds():
            advice = did_you_mean(name, project.feeds())
            kinds = one_of([kind.name for kind in DOCUMENT_KINDS])
            raise document.refuse(f"no active {kinds} is called {name!r}{advice}", "patterns")
    return Case(
        name=document.name,
        document=document,
        events=events,
        promises=list(_promises(document, project)),
        patterns=body.get("patterns", ()),
        is_open=body.get("open", False),
        expected=expected,
    )


def _promises(document: Document, project: LocalProject) -> Iterator[tuple[str, Punctuation]]:
    for name, promises in document.body.get("punctuations", {}).items():
        _check_stream(document, project, name, "punctuations")
        for promise in promises:
            try:
                yield name, read_promise(promise)
            except ForestallError as error:
                raise document.refuse(error.message, "punctuations") from error


def _only_stream(document: Document, project: LocalProject) -> str:
    stream: str | None = document.body.get("stream")
    if stream is not None:
        _check_stream(document, project, stream, "stream")
        return stream
    posted = [name for name, declaration in project.streams.items() if not declaration.derived]
    if len(posted) != 1:
        raise document.refuse("say which stream the events are of, as the project has several")
    return posted[0]


def _check_stream(document: Document, project: LocalProject, stream: str, place: str) -> None:
    if stream not in project.streams:
        advice = did_you_mean(stream, project.streams)
        raise document.refuse(f"no document declares the stream {stream!r}{advice}", place)
    if project.stream(stream).derived:
        raise document.refuse(f"the events of {stream!r} are derived; give those that it is made of", place)


def _batch(document: Document, project: LocalProject, stream: str, written: Any, place: str) -> EventBatch:
    """Return the events of a stream in a test. ``written`` has the events, or a file name if ``place`` is ``files``."""
    if place != "files":
        return EventBatch.from_events(list(_events(document, project, stream, written)))
    return read_batch(document.file.parent / written, reading_of(project.stream(stream)))


def _events(document: Document, project: LocalProject, stream: str, written: Any) -> Iterator[Event]:
    if isinstance(written, str):
        written = {document.body.get("key", _KEY): written}
    if isinstance(written, Mapping):
        events = [_short(word, key) for key, words in written.items() for word in words.split()]
        yield from sorted(events, key=lambda event: event.time_us)
        return
    declaration = project.stream(stream)
    for plain_event in written:
        check_extent(plain_event)
        yield parse_plain(plain_event, declaration)


def _short(word: str, key: str) -> Event:
    parts = _EVENT.fullmatch(word)
    if parts is None or int(parts[2]) > _LATEST_S:
        raise EventRejected(
            f"{word!r} is not an event; write the type, the second and perhaps a value, such as B3 or B3:5, and "
            "separate events by spaces"
        )
    event_type, second, mark, value = parts.groups()
    data = {} if value is None else {"v": _number(value)}
    event_id = f"{event_type}{second}{mark}"
    return Event(id=event_id, type=event_type, time_us=int(second) * _SECOND_US, key=key, data=data)


def _seconds(time: str) -> str:
    whole, part = divmod(parse_time(time), _SECOND_US)
    return f"{whole}.{part:06d}".rstrip("0") if part else str(whole)


def _number(text: str) -> int | float | str:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text.strip('"')


def _tidy(line: str) -> str:
    """Normalise a line, so that lines with the same meaning are equal."""
    head, colon, reason = " ".join(line.split()).partition(": ")
    if colon or "=" not in head:
        return f"{head}{colon}{reason}"
    words = head.split()
    return " ".join([*(word for word in words if "=" not in word), *sorted(word for word in words if "=" in word)])


def _is_met(expected: str, actual: str) -> bool:
    """Return whether an actual line is as expected. The expected line may omit the reason, or contain a part of it."""
    if expected == actual:
        return True
    head, _, reason = expected.partition(": ")
    start, colon, why = actual.partition(": ")
    return bool(colon) and head == start and reason in why


def _paired(expected: Sequence[str], actual: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of an expected and an actual line. Missing and unexpected lines come last, paired with ""."""
    unpaired, missing = list(actual), []
    for line in expected:
        match = next((candidate for candidate in unpaired if _is_met(line, candidate)), None)
        if match is None:
            missing.append(line)
        else:
            unpaired.remove(match)
            yield line, match
    yield from ((line, "") for line in missing)
    yield from (("", line) for line in unpaired)
