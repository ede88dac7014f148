"""Mapping files: from the tasks of a model to event types.

A file is a mapping, in YAML or JSON, from names or ids of tasks to event types, or to null for tasks without an event.
The key ``:instances`` sets whether multi-instance activities of BPMN happen ``zero-or-more`` times or ``one-or-more``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workflows.errors import ModelRefused
from workflows.formats.entries import Entry, Mapped, Scalar, at_line, read_entries
from workflows.model import ModelNotice
from workflows.naming import normalised

INSTANCES = ":instances"
"""A key that is not a task: how often multi-instance activities happen if the model does not specify it."""
ONE_OR_MORE, ZERO_OR_MORE = "one-or-more", "zero-or-more"


def read_mapping(text: str) -> dict[str, str | None]:
    """Names or ids of tasks to event types; None makes a task silent. White space in names is normalised.

    Raises:
        ModelRefused: The text is not such a mapping; every problem with its line.
    """
    entry = read_entries(text.encode("utf-8", "replace"))
    if not isinstance(entry, Mapped):
        raise ModelRefused(
            [(at_line(entry.line), 'a mapping file lists names and event types, such as "Ship it": Ship')]
        )
    mapping: dict[str, str | None] = {}
    problems: list[tuple[str, str]] = []
    for key, value in entry.pairs:
        name, place = normalised(key.text), at_line(key.line)
        if not name:
            problems.append((place, "a task needs a name or an id"))
        elif name in mapping:
            problems.append((place, f"{name!r} is given twice; give it once"))
        elif (problem := _problem_of(value)) is not None:
            problems.append((place, f"{name}: {problem}"))
        else:
            assert isinstance(value, Scalar)
            mapping[name] = None if value.is_null else normalised(value.text)
    if problems:
        raise ModelRefused(problems)
    return mapping


def event_type(mapping: Mapping[str, str | None], identity: str, name: str, default: str | None) -> str | None:
    """The event type of a task, None for a silent one: by its id, or by its name, or ``default``."""
    return mapping.get(identity, mapping.get(name, default)) if name else mapping.get(identity, default)


def unused_keys(mapping: Mapping[str, str | None], names: Iterable[str]) -> tuple[ModelNotice, ...]:
    """One notice for each key that is neither name nor id of a task."""
    return tuple(
        ModelNotice(element="", message=f"the mapping names {key!r}, which is not a task of this model")
        for key in sorted(set(mapping).difference(names, (INSTANCES,)))
    )


def instances_problem(mapping: Mapping[str, str | None]) -> str | None:
    """The problem with the instances setting of a mapping; None if it is valid."""
    setting = mapping.get(INSTANCES, ZERO_OR_MORE)
    if setting in (ZERO_OR_MORE, ONE_OR_MORE):
        return None
    return (
        f"the mapping says {INSTANCES}: {setting}; write {ZERO_OR_MORE} (as BPMN has it, the default) or {ONE_OR_MORE}"
    )


def _problem_of(value: Entry) -> str | None:
    """The problem with an event type; None if it is valid."""
    if not isinstance(value, Scalar):
        return "an event type is a text, or null for a task without event"
    if value.is_null:
        return None if value.text else "give its event type, or null for a task without event"
    if not value.is_text:
        return f'an event type is a text; put quotes around it: "{value.text}"'
    return label_problem(value.text)


def label_problem(text: str) -> str | None:
    """The problem with the name of an activity or an event type; None if it is valid."""
    if not normalised(text):
        return "the name is empty"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "the name contains half of a surrogate pair, which is not valid Unicode"
    return None
