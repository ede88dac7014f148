"""Reads and writes constraint sets as documents. Reading reports all problems, and writing is canonical.

A document has one of two forms. A list has entries such as ``{prior: [A, B]}`` or ``"prior(A, B)"``. A mapping has a
list of pairs for each kind, ``{"prior": [["A", "B"]], "end": ["X"]}``, and may have a list of entries under
``constraints``. A number is written before the names: ``{existence: [3, A]}``, ``"existence(3, A)"``. Names are event
types, or types with a condition, ``Quote [price > 1000]``; in the text form unusual types are in backticks. Other
members of a mapping: ``stream``, the name of the stream; ``settings``, the settings of the set; ``workflow``, the
constraints that a workflow adds (written by the service); ``mined``, a description of the log that the set was mined
from, which has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constraints.documents.name_form import (
    Misread,
    NameReader,
    PlacedProblem,
    Verbatim,
    excerpt,
    whole_number,
    written_name,
)
from constraints.documents.settings_form import notices_of, read_settings, written_settings
from constraints.documents.vocabulary import MAX_COUNT, TEMPLATES, Template, template_of
from constraints.documents.workflow_form import read_workflow, written_automaton
from constraints.errors import InvalidConstraints, Problem
from constraints.model import Constraint, ConstraintSet, End, Part, Process, Rule, Settings, following, quoted
from streams import Bare, DocumentPath, UnreadableText, WrittenDocument, decoded_text, read_document

_MINED_KEY = "mined"

MAX_BYTES = 1_000_000
MAX_CONSTRAINTS = 10_000
MAX_DERIVED = 250_000

_NAME = re.compile(
    r"\s*+(?:`((?:[^`]|``)++)`|(\[[^`,()]*+|[^`,()\[\s][^`,()\[]*+))?+"  # a type, in backticks or bare
    r"\s*+(\[(?:'[^']*+'|`[^`]*+`|[^\]'`])*+\])?+\s*+(?:,|$)"  # a condition
)
_NUMBER = re.compile(r"\d{1,9}")
_LIST_KEY = "constraints"
_STREAM_KEY = "stream"
_SETTINGS_KEY = "settings"
_WORKFLOW_KEY = "workflow"


@dataclass(frozen=True, slots=True)
class ParsedConstraints:
    """The contents of a document.

    ``notices`` warn about settings that may lose matches, and about words that mean something else in DECLARE.
    ``stream`` is the stream that the document names. ``mined`` describes the log that the set was mined from.
    """

    constraint_set: ConstraintSet
    notices: tuple[str, ...] = ()
    stream: str | None = None
    mined: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    template: Template
    names: tuple[str, ...]
    count: int

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.template.translate(self.names, self.count)


def parse_constraints(
    document: object, *, max_bytes: int = MAX_BYTES, max_constraints: int = MAX_CONSTRAINTS
) -> ParsedConstraints:
    """Read a constraint set from JSON or YAML text (``str`` or UTF-8 ``bytes``), or from an already decoded value.

    Raises:
        InvalidConstraints: The document has problems. The error lists each problem with its entry and, for a text, its
            line.
    """
    source = _source(document, max_bytes)
    value = document if source is None else source.value
    names = NameReader()
    entries: list[_Entry] = []
    stream, problems = _stream(value)
    settings = _settings(value, names, problems)
    process, derived = _workflow(value, names, problems)
    mined = _read_mined(value, problems)
    if isinstance(value, Mapping) and not problems and not set(value) - {_STREAM_KEY, _SETTINGS_KEY, _MINED_KEY}:
        problems.append(((), "list at least one constraint, or write constraints: [] for an empty set"))
    for number, (path, entry) in enumerate(_entries(value)):
        if number >= max_constraints:
            problems.append((path, f"there are more than {max_constraints} entries; split the set"))
            break
        try:
            entries.append(_read_entry(entry, names))
        except Misread as problem:
            problems.append((path, str(problem)))
    if problems:
        raise InvalidConstraints(_located(problems, source))
    parts = [part for entry in entries for part in entry.parts]
    constraint_set = ConstraintSet.of(parts, symbols=names.symbols, settings=settings)
    if process is not None:
        constraint_set = _joined(constraint_set, process, derived)
    return ParsedConstraints(constraint_set, (*notices_of(settings), *_end_notices(entries)), stream, mined)


def to_document(constraint_set: ConstraintSet) -> dict[str, object]:
    """Return the canonical form of a constraint set as plain JSON values.

    ``parse_constraints`` reads an equal set from the document. But a set built in code may lack constraints that follow
    from its rules. The set that is read always has these constraints.
    """
    hand_written, process = constraint_set.own, constraint_set.process
    document: dict[str, object] = {
        _LIST_KEY: [_written(part, constraint_set) for part in (*hand_written.constraints, *hand_written.rules)],
        End.kind: [written_name(name, constraint_set.symbols) for name in sorted(hand_written.end_events)],
    }
    if process is not None:
        derived = [part for part in constraint_set.constraints if part in process.derived]
        workflow: dict[str, object] = {
            "name": process.workflow,
            "version": process.version,
            _LIST_KEY: [_written(part, constraint_set) for part in derived],
            End.kind: [written_name(name, constraint_set.symbols) for name in sorted(process.derived_ends)],
        }
        if process.automaton is not None:
            workflow["automaton"] = written_automaton(process.automaton)
        document[_WORKFLOW_KEY] = workflow
    if settings := written_settings(constraint_set.settings, constraint_set.symbols):
        document[_SETTINGS_KEY] = settings
    return document


def _written(part: Constraint | Rule, constraint_set: ConstraintSet) -> dict[str, object]:
    count = part.count if isinstance(part, Rule) else None
    names = [written_name(name, constraint_set.symbols) for name in part.names]
    return {part.kind: names if count is None else [count, *names]}


def _end_notices(entries: Sequence[_Entry]) -> Iterator[str]:
    """Yield a notice that ``end`` differs from DECLARE's End, if the document also uses DECLARE's ``init``."""
    ends = [entry for entry in entries if entry.template.name == End.kind]
    if ends and any(entry.template.name == "init" for entry in entries):
        name = quoted(ends[0].names[0])
        yield (
            f"end({name}) says that nothing comes after {name}, not that every trace ends with it; "
            f"DECLARE's End is last({name})"
        )


def _source(document: object, max_bytes: int) -> WrittenDocument | None:
    if not isinstance(document, str | bytes):
        return None
    try:
        return read_document(decoded_text(document, max_bytes))
    except UnreadableText as error:
        problems = (Problem(where="", line=line, message=message) for line, message in error.problems)
        raise InvalidConstraints(tuple(problems)) from error


def _located(problems: Sequence[PlacedProblem], source: WrittenDocument | None) -> tuple[Problem, ...]:
    return tuple(
        Problem(
            where=", ".join(f"entry {step + 1}" if isinstance(step, int) else step for step in path),
            message=message,
            line=None if source is None else source.line(path),
        )
        for path, message in problems
    )


def _stream(value: object) -> tuple[str | None, list[PlacedProblem]]:
    if not isinstance(value, Mapping) or _STREAM_KEY not in value:
        return None, []
    stream = value[_STREAM_KEY]
    if isinstance(stream, str):
        return stream, []
    return None, [((_STREAM_KEY,), f"the name of a stream is a text, got {excerpt(stream)}; put it in quotes")]


def _settings(value: object, names: NameReader, problems: list[PlacedProblem]) -> Settings:
    if not isinstance(value, Mapping) or _SETTINGS_KEY not in value:
        return Settings()
    settings, setting_problems = read_settings(value[_SETTINGS_KEY], names)
    problems.extend(((_SETTINGS_KEY, *path), message) for path, message in setting_problems)
    return settings


def _workflow(value: object, names: NameReader, problems: list[PlacedProblem]) -> tuple[Process | None, list[Part]]:
    if not isinstance(value, Mapping) or _WORKFLOW_KEY not in value:
        return None, []
    workflow_problems: list[PlacedProblem] = []
    form, parts = read_workflow(value[_WORKFLOW_KEY], workflow_problems), list[Part]()
    if form is not None and len(form.constraints) + len(form.end) > MAX_DERIVED:
        workflow_problems.append(((), f"there are more than {MAX_DERIVED} constraints of the workflow"))
    elif form is not None:
        listed = [(_LIST_KEY, index, entry) for index, entry in enumerate(form.constraints)]
        listed += [(End.kind, index, {End.kind: [name]}) for index, name in enumerate(form.end)]
        for key, index, entry in listed:
            try:
                parts += _derived(key, entry, names)
            except Misread as problem:
                workflow_problems.append(((key, index), str(problem)))
    problems.extend(((_WORKFLOW_KEY, *path), message) for path, message in workflow_problems)
    return (None if form is None or workflow_problems else form.process), parts


def _derived(key: str, entry: object, names: NameReader) -> tuple[Part, ...]:
    """Return the parts of an entry that follows from a workflow.

    An entry of the list ``constraints`` that is neither an order nor a clause raises ``Misread``.
    """
    parts = _read_entry(entry, names).parts
    if key == _LIST_KEY and any(isinstance(part, Rule | End) for part in parts):
        raise Misread(
            f"orders and clauses follow from a workflow, and end events in a list of their own; got {excerpt(entry)}"
        )
    return parts


def _joined(hand_written: ConstraintSet, process: Process, derived: Sequence[Part]) -> ConstraintSet:
    return following(
        hand_written,
        workflow=process.workflow,
        version=process.version,
        constraints=[part for part in derived if not isinstance(part, End | Rule)],
        end_events=[part.type for part in derived if isinstance(part, End)],
        automaton=process.automaton,
    )


def _entries(value: object) -> Iterator[tuple[DocumentPath, object]]:
    """Yield the entries of a document, each with its path.

    A list under a kind is split: ``{"prior": [["A", "B"]]}`` yields ``{"prior": ["A", "B"]}``.
    """
    if isinstance(value, list):
        yield from (((index,), item) for index, item in enumerate(value))
    elif isinstance(value, Mapping):
        for key, items in value.items():
            if key in (_STREAM_KEY, _SETTINGS_KEY, _WORKFLOW_KEY, _MINED_KEY):
                continue
            if key == _LIST_KEY and isinstance(items, list):
                yield from (((_LIST_KEY, index), item) for index, item in enumerate(items))
            elif _is_group(key, items):
                yield from (((key, index), {key: item}) for index, item in enumerate(items))
            else:
                yield (str(key),), {key: items}
    else:
        form = '[{prior: [A, B]}, "prior(A, B)"] or {prior: [[A, B]], end: [F]}'
        problem = (
            f"a document is a list of entries or a mapping from kinds to lists, such as {form}; got {excerpt(value)}"
        )
        raise InvalidConstraints((Problem(where="", message=problem),))


def _is_group(kind: object, items: object) -> bool:
    """Check whether ``items`` lists several constraints of one kind, and not the event types of a single constraint."""
    if not isinstance(kind, str) or not isinstance(items, list) or (template_and_count := template_of(kind)) is None:
        return False
    template, _ = template_and_count
    if template.count and items and _count(items[0]) is not None:
        return False
    return template.most == 1 or not items or not all(isinstance(item, str | Mapping) for item in items)


def _read_entry(entry: object, names: NameReader) -> _Entry:
    kind: object
    listed: Sequence[object]
    is_text = isinstance(entry, str)
    if isinstance(entry, str):
        kind, listed = _split(entry)
    elif isinstance(entry, Mapping) and len(entry) == 1:
        ((kind, operands),) = entry.items()
        listed = operands if isinstance(operands, list) else [operands]
    else:
        raise Misread(f'an entry is {{prior: [A, B]}} or "prior(A, B)", got {excerpt(entry)}')
    template_and_count = template_of(kind) if isinstance(kind, str) else None
    if template_and_count is None:
        allowed = ", ".join(template.form for template in TEMPLATES)
        raise Misread(f"{excerpt(kind)} is not a kind of constraint that is supported; use one of {allowed}")
    template, count = template_and_count
    if template.count and count is None and len(listed) > 1 and (count := _count(listed[0])) is not None:
        listed = listed[1:]
    if is_text:
        listed = [str(name) if isinstance(name, Bare) else name for name in listed]
    read = names.name if template.allows_symbols else names.plain_type
    return _checked(template, tuple(map(read, listed)), count)


def _count(value: object) -> int | None:
    number = whole_number(value)
    return number if number is not None and abs(number) < 10**9 else None


def _split(text: str) -> tuple[str, list[object]]:
    kind, bracket, arguments = text.strip().partition("(")
    if not bracket or not arguments.endswith(")"):
        raise Misread(f'write a constraint as "prior(A, B)", got {excerpt(text)}')
    inside, place, names = arguments[:-1], 0, list[object]()
    while place < len(inside):
        name_match = _NAME.match(inside, place)
        if name_match is None or not (name_match[1] or name_match[2]):
            raise Misread(
                f"cannot read event types from {excerpt(inside[place:])}; "
                "separate them by commas, and put unusual names in backticks"
            )
        names.append(_written_operand(*name_match.groups()))
        place = name_match.end()
    return kind, names


def _written_operand(verbatim: str | None, plain: str | None, condition: str | None) -> object:
    if verbatim is not None:
        return Verbatim(verbatim.replace("``", "`")) if condition is None else f"`{verbatim}` {condition}"
    name = (plain or "").rstrip()
    if condition is not None:
        return f"{name} {condition}"
    return Bare(name) if _NUMBER.fullmatch(name) else name


def _checked(template: Template, names: tuple[str, ...], count: int | None) -> _Entry:
    printed = _printed(template, names, count)
    if len(names) < template.fewest or (template.most is not None and len(names) > template.most):
        amount = str(template.fewest) if template.fewest == template.most else f"at least {template.fewest}"
        noun = "event type" if amount.endswith("1") else "event types"
        number = {"": "", "optional": ", after a number if one is meant", "required": " after a number"}
        raise Misread(f"{template.form} takes {amount} {noun}{number[template.count]}, got {printed}")
    if template.count == "required" and count is None:
        raise Misread(f"{template.form} takes a number before the event type, got {printed}")
    if count is not None and not 1 <= count <= MAX_COUNT:
        raise Misread(f"{template.form} takes a number from 1 to {MAX_COUNT}, got {printed}")
    if len(set(names)) < len(names) and not template.allows_same:
        once = quoted(names[0])
        advice = f"{printed}; for at most one {once}, write prior({once}, {once})"
        raise Misread(f"{template.form} takes different event types, got {advice}")
    return _Entry(template, names, 1 if count is None else count)


def _printed(template: Template, names: Sequence[str], count: int | None) -> str:
    return f"{template.name}({', '.join([*([] if count is None else [str(count)]), *map(quoted, names)])})"


def _read_mined(value: object, problems: list[PlacedProblem]) -> Mapping[str, Any] | None:
    if not isinstance(value, Mapping) or _MINED_KEY not in value:
        return None
    description = value[_MINED_KEY]
    if not isinstance(description, Mapping):
        problems.append(
            ((_MINED_KEY,), f"mined is a mapping that says where the set comes from; got {excerpt(description)}")
        )
        return None
    return {str(key): _plain(item) for key, item in description.items()}


def _plain(value: object) -> object:
    """Convert a decoded value to plain JSON types: a ``Bare`` becomes its value, and keys become texts."""
    if isinstance(value, Bare):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
