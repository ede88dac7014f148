"""An uploaded list of constraints: read with all its problems named, and written in one form.

Two shapes are read. A list holds entries, each ``{prior: [A, B]}`` or ``"prior(A, B)"``. A mapping goes from kinds to
lists of pairs, ``{"prior": [["A", "B"]], "end": ["X"]}``, and may hold such a list under ``constraints``. Names in
brackets of a list are event types as they are; in the text form odd ones stand in backticks. A mapping may say with
``stream`` which stream it is for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from constraints.errors import InvalidConstraints, Problem
from constraints.model import ConstraintSet, End, Part, quoted
from constraints.source import Bare, Path, lines_of, read_text
from constraints.vocabulary import TEMPLATES, Template, template_of

MAX_BYTES = 1_000_000
MAX_CONSTRAINTS = 10_000
MAX_NAME = 500

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,()\s][^`,()]*))\s*(?:,|$)")
_LIST_KEY = "constraints"
_STREAM_KEY = "stream"


@dataclass(frozen=True, slots=True)
class ParsedConstraints:
    """A document that was understood.

    Attributes:
        constraint_set: What it says.
        notices: Where only a part of a template's meaning is kept, in words.
        stream: The stream that it says it is for.
    """

    constraint_set: ConstraintSet
    notices: tuple[str, ...] = ()
    stream: str | None = None


class _Misread(Exception):
    """One problem, before its place in the document is known."""


def parse_constraints(
    document: object, *, max_bytes: int = MAX_BYTES, max_constraints: int = MAX_CONSTRAINTS
) -> ParsedConstraints:
    """Read a constraint set.

    Args:
        document: JSON or YAML text, as ``str`` or UTF-8 ``bytes``, or the value that such a text decodes to.
        max_bytes: Longest text that is read.
        max_constraints: Most entries that are read.

    Raises:
        InvalidConstraints: With every problem, its entry, and its line if the document is a text.
    """
    text = _text(document, max_bytes)
    value = document if text is None else read_text(text)
    parts: list[Part] = []
    notices: list[str] = []
    stream, problems = _stream(value)
    if isinstance(value, Mapping) and not problems and not set(value) - {_STREAM_KEY}:
        problems.append(((), "list at least one constraint, or write constraints: [] for an empty set"))
    for number, (path, entry) in enumerate(_entries(value)):
        if number >= max_constraints:
            problems.append((path, f"there are more than {max_constraints} entries; split the set"))
            break
        try:
            template, names = _read_entry(entry)
        except _Misread as problem:
            problems.append((path, str(problem)))
            continue
        meant = template.translate(names)
        parts.extend(meant)
        if template.lost:
            lost = template.lost.format(*map(quoted, names))
            notices.append(f"{_printed(template, names)} is kept as {meant[0]}; that {lost} is left out")
    if problems:
        raise InvalidConstraints(_located(problems, text))
    return ParsedConstraints(ConstraintSet.of(parts), tuple(dict.fromkeys(notices)), stream)


def to_document(constraint_set: ConstraintSet) -> dict[str, object]:
    """The canonical form, plain JSON values; ``parse_constraints`` gives back an equal set."""
    return {
        _LIST_KEY: [{constraint.kind: list(constraint.names)} for constraint in constraint_set.constraints],
        End.kind: sorted(constraint_set.end_events),
    }


def _text(document: object, max_bytes: int) -> str | None:
    if isinstance(document, str):
        size = len(document.encode(errors="surrogatepass"))
    elif isinstance(document, bytes):
        size = len(document)
    else:
        return None
    if size > max_bytes:
        raise InvalidConstraints(
            (Problem(where="", message=f"the text has {size} bytes; at most {max_bytes} are read"),)
        )
    try:
        return document.decode() if isinstance(document, bytes) else document
    except UnicodeDecodeError as error:
        raise InvalidConstraints((Problem(where="", message=f"the text is not UTF-8: {error.reason}"),)) from error


def _located(problems: Sequence[tuple[Path, str]], text: str | None) -> tuple[Problem, ...]:
    lines = [None] * len(problems) if text is None else lines_of(text, [path for path, _ in problems])
    return tuple(
        Problem(
            where=", ".join(f"entry {step + 1}" if isinstance(step, int) else step for step in path),
            message=message,
            line=line,
        )
        for (path, message), line in zip(problems, lines, strict=True)
    )


def _stream(value: object) -> tuple[str | None, list[tuple[Path, str]]]:
    """The stream that a document names, if it does, and what is wrong with the name."""
    if not isinstance(value, Mapping) or _STREAM_KEY not in value:
        return None, []
    named = value[_STREAM_KEY]
    if isinstance(named, str):
        return named, []
    return None, [((_STREAM_KEY,), f"the name of a stream is a text, got {_shown(named)}; put it in quotes")]


def _entries(value: object) -> Iterator[tuple[Path, object]]:
    """The entries of a document with their places; a pair in a group becomes an entry of its kind."""
    if isinstance(value, list):
        yield from (((index,), item) for index, item in enumerate(value))
    elif isinstance(value, Mapping):
        for key, items in value.items():
            if key == _STREAM_KEY:
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
            f"a document is a list of entries or a mapping from kinds to lists, such as {form}; got {_shown(value)}"
        )
        raise InvalidConstraints((Problem(where="", message=problem),))


def _is_group(kind: object, items: object) -> bool:
    """Whether ``items`` lists several constraints of a kind, and not the event types of one."""
    if not isinstance(kind, str) or not isinstance(items, list) or (template := template_of(kind)) is None:
        return False
    return template.most == 1 or not items or not all(isinstance(item, str) for item in items)


def _read_entry(entry: object) -> tuple[Template, tuple[str, ...]]:
    kind: object
    names: list[object]
    if isinstance(entry, str):
        kind, names = _split(entry)
    elif isinstance(entry, Mapping) and len(entry) == 1:
        ((kind, listed),) = entry.items()
        names = listed if isinstance(listed, list) else [listed]
    else:
        raise _Misread(f'an entry is {{prior: [A, B]}} or "prior(A, B)", got {_shown(entry)}')
    template = template_of(kind) if isinstance(kind, str) else None
    if template is None:
        allowed = ", ".join(known.form for known in TEMPLATES)
        raise _Misread(f"{_shown(kind)} is not a kind of constraint that is supported; use one of {allowed}")
    return template, _checked(template, names)


def _split(text: str) -> tuple[str, list[object]]:
    """Kind and event types of the text form."""
    kind, bracket, rest = text.strip().partition("(")
    if not bracket or not rest.endswith(")"):
        raise _Misread(f'write a constraint as "prior(A, B)", got {_shown(text)}')
    inside, place, names = rest[:-1], 0, list[object]()
    while place < len(inside):
        found = _NAME.match(inside, place)
        if found is None:
            raise _Misread(
                f"cannot read event types from {_shown(inside[place:])}; "
                "separate them by commas, and put odd names in backticks"
            )
        quoted_name, plain_name = found.groups()
        names.append(plain_name.rstrip() if quoted_name is None else quoted_name.replace("``", "`"))
        place = found.end()
    return kind, names


def _checked(template: Template, names: Sequence[object]) -> tuple[str, ...]:
    checked = tuple(_name(name) for name in names)
    if len(checked) < template.fewest or (template.most is not None and len(checked) > template.most):
        amount = str(template.fewest) if template.fewest == template.most else f"at least {template.fewest}"
        noun = "event type" if amount.endswith("1") else "event types"
        raise _Misread(f"{template.form} takes {amount} {noun}, got {_printed(template, checked)}")
    if len(set(checked)) < len(checked) and not template.allows_same:
        once = quoted(checked[0])
        got = f"{_printed(template, checked)}; that at most one {once} comes is prior({once}, {once})"
        raise _Misread(f"{template.form} takes different event types, got {got}")
    return checked


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise _Misread(f"an event type is a text, got {_shown(value)}; put it in quotes")
    if not value.strip() or len(value) > MAX_NAME or _is_broken(value):
        raise _Misread(f"an event type has 1 to {MAX_NAME} characters of valid Unicode, got {_shown(value)}")
    return value


def _is_broken(name: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in name)


def _shown(value: object) -> str:
    """A value of the document as JSON, or as it was written in YAML, cut short."""
    text = value.written if isinstance(value, Bare) else json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _printed(template: Template, names: Sequence[str]) -> str:
    return f"{template.name}({', '.join(map(quoted, names))})"
