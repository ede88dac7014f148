"""Reads mapping files, which give the tasks of a model their event types.

A mapping file is YAML or JSON. Its keys are names or ids of tasks; its values are event types, or null for a task that
emits no event. The key ``:instances`` is a setting: whether multi-instance activities of BPMN run ``zero-or-more`` or
``one-or-more`` times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import yaml

from streams import NULL_TAG, TEXT_TAG
from workflows.formats.findings import Findings
from workflows.formats.nodes import place_of, read_node
from workflows.model import ModelNotice
from workflows.naming import normalised

INSTANCES = ":instances"
"""The key of a setting, not of a task: how often a multi-instance activity runs if the model does not specify a number.
"""
ONE_OR_MORE, ZERO_OR_MORE = "one-or-more", "zero-or-more"


def read_mapping(text: str) -> dict[str, str | None]:
    """Read a mapping file. It maps names or ids of tasks to event types, or to None for silent tasks.

    White space in names is normalised.

    Raises:
        ModelRefused: The text is not a mapping of tasks. The error lists every problem with its line.
    """
    root, findings = read_node(text), Findings()
    if not isinstance(root, yaml.MappingNode):
        raise findings.refusal(place_of(root), 'a mapping file lists names and event types, such as "Ship it": Ship')
    mapping: dict[str, str | None] = {}
    for key, value in root.value:
        name, place = normalised(key.value), place_of(key)
        if not name:
            findings.refuse(place, "a task needs a name or an id")
        elif name in mapping:
            findings.refuse(place, f"{name!r} is given twice; give it once")
        elif (problem := _problem_of(value)) is not None:
            findings.refuse(place, f"{name}: {problem}")
        else:
            mapping[name] = None if value.tag == NULL_TAG else normalised(value.value)
    findings.finish()
    return mapping


def event_type(mapping: Mapping[str, str | None], identity: str, name: str, default: str | None) -> str | None:
    """Return the event type of a task, or None for a silent task.

    The mapping is searched for the task's id, then for its name. If it has neither, the result is ``default``.
    """
    return mapping.get(identity, mapping.get(name, default)) if name else mapping.get(identity, default)


def unused_keys(mapping: Mapping[str, str | None], names: Iterable[str]) -> tuple[ModelNotice, ...]:
    """Return a notice for each key of a mapping that is neither the name nor the id of a task.

    ``names`` are the names and ids of all tasks.
    """
    return tuple(
        ModelNotice(element="", message=f"the mapping names {key!r}, which is not a task of this model")
        for key in sorted(set(mapping).difference(names, (INSTANCES,)))
    )


def instances_problem(mapping: Mapping[str, str | None]) -> str | None:
    """Return what is wrong with the setting ``:instances`` of a mapping, or None if it is valid."""
    setting = mapping.get(INSTANCES, ZERO_OR_MORE)
    if setting in (ZERO_OR_MORE, ONE_OR_MORE):
        return None
    return (
        f"the mapping says {INSTANCES}: {setting}; write {ZERO_OR_MORE} (as BPMN has it, the default) or {ONE_OR_MORE}"
    )


def _problem_of(value: yaml.Node) -> str | None:
    if not isinstance(value, yaml.ScalarNode):
        return "an event type is a text, or null for a task without event"
    if value.tag == NULL_TAG:
        return None if value.value else "give its event type, or null for a task without event"
    if value.tag != TEXT_TAG:
        return f'an event type is a text; put quotes around it: "{value.value}"'
    return label_problem(value.value)


def label_problem(text: str) -> str | None:
    """Return what is wrong with the name of an activity or event type, or None if it is valid."""
    if not normalised(text):
        return "the name is empty"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "the name contains half of a surrogate pair, which is not valid Unicode"
    return None
