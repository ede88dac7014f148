"""Reads the simulation settings of a tree file: attributes, durations and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import yaml

from streams import NULL_TAG, TEXT_TAG
from workflows.attributes import (
    Attribute,
    BooleanAttribute,
    ChoiceAttribute,
    ConstantAttribute,
    ExponentialAttribute,
    IntegerAttribute,
    NormalAttribute,
    TextAttribute,
    ThresholdAttribute,
    UniformAttribute,
    Value,
)
from workflows.durations import (
    Duration,
    ExponentialDuration,
    FixedDuration,
    NormalDuration,
    UniformDuration,
    parse_duration_us,
)
from workflows.errors import InvalidWorkflow
from workflows.formats.findings import Findings
from workflows.formats.nodes import keys_of, number_of, place_of

_TRUTHS = {"true": True, "false": False}


class _Unfit(Exception):
    """A setting has the wrong form. The message names the right form."""


def read_duration(entry: yaml.Node, path: str, findings: Findings) -> Duration | None:
    """Read the duration of an activity: ``5 min``, or a mapping with one key. Return None after a problem."""
    try:
        if isinstance(entry, yaml.ScalarNode):
            return FixedDuration(_duration_us(entry))
        name, value = _only_pair(entry, _DURATIONS)
        return _DURATIONS[name](value)
    except (_Unfit, InvalidWorkflow) as error:
        findings.refuse(place_of(entry, path), str(error))
        return None


def read_attributes(entry: yaml.Node, path: str, findings: Findings) -> tuple[Attribute, ...]:
    """Read the attributes of an activity: a mapping from their names to generators. Faulty ones are left out."""
    if not isinstance(entry, yaml.MappingNode):
        findings.refuse(
            place_of(entry, path),
            "attributes are a mapping from names to how each is drawn, such as {price: {normal: [9, 1]}}",
        )
        return ()
    attributes: list[Attribute] = []
    for key, value in entry.value:
        try:
            attributes.append(_attribute(key.value, value))
        except (_Unfit, InvalidWorkflow) as error:
            findings.refuse(place_of(key, f"{path}.{key.value}"), str(error))
    return tuple(attributes)


def read_probability(entry: yaml.Node, path: str, findings: Findings) -> float | None:
    """Read a probability, a number from 0 to 1. Return None after a problem."""
    number = number_of(entry)
    if number is None or not 0.0 <= number <= 1.0:
        findings.refuse(place_of(entry, path), "a probability is a number from 0 to 1")
        return None
    return number


def whole_number(entry: yaml.Node) -> int | None:
    """Return the whole number of an entry, or None if it is not a whole number."""
    number = number_of(entry)
    return int(number) if number is not None and number == int(number) and abs(number) <= 2**53 else None


def _attribute(name: str, entry: yaml.Node) -> Attribute:
    if not name.strip():
        raise _Unfit("an attribute needs a name")
    if isinstance(entry, yaml.ScalarNode):
        return ConstantAttribute(name, _value(entry))
    generator, value = _only_pair(entry, _ATTRIBUTES)
    return _ATTRIBUTES[generator](name, value)


def _integer(name: str, entry: yaml.Node) -> Attribute:
    if isinstance(entry, yaml.ScalarNode):
        return IntegerAttribute(name, _whole(entry, "integer takes the largest number, or [least, largest]"))
    least, most = (_whole(item, "integer takes whole numbers") for item in _items(entry, 2, "integer"))
    return IntegerAttribute(name, most - least + 1, least)


def _threshold(name: str, entry: yaml.Node) -> Attribute:
    names = ("at", "highest", "fail", "also")
    if not {"at", "highest", "fail"} <= set(keys_of(entry)) <= set(names):
        raise _Unfit("threshold takes at, highest and fail, and maybe also: more names for the same number")
    settings = {key.value: value for key, value in entry.value}
    also = settings.get("also")
    more = also.value if isinstance(also, yaml.SequenceNode) else []
    if (also is not None and not isinstance(also, yaml.SequenceNode)) or any(item.tag != TEXT_TAG for item in more):
        raise _Unfit("also is a list of names")
    return ThresholdAttribute(
        names=(name, *(item.value for item in more)),
        fail_ratio=_number(settings["fail"], "fail is a number from 0 to 1"),
        threshold=_whole(settings["at"], "at is a whole number"),
        highest=_whole(settings["highest"], "highest is a whole number"),
    )


def _choice(name: str, entry: yaml.Node) -> Attribute:
    if isinstance(entry, yaml.MappingNode):
        weights = tuple(_number(value, "a weight is a number, 0 or more") for _, value in entry.value)
        return ChoiceAttribute(name, tuple(_value(key) for key, _ in entry.value), weights)
    if isinstance(entry, yaml.SequenceNode):
        return ChoiceAttribute(name, tuple(map(_value, entry.value)))
    raise _Unfit("choice takes a list of values, or a mapping from values to weights")


_ATTRIBUTES: Mapping[str, Callable[[str, yaml.Node], Attribute]] = {
    "integer": _integer,
    "text": lambda name, entry: TextAttribute(
        name, _whole(entry, f"text takes the number of texts, {name}-1 and so on")
    ),
    "threshold": _threshold,
    "choice": _choice,
    "uniform": lambda name, entry: UniformAttribute(name, *_numbers(entry, 2, "uniform")),
    "normal": lambda name, entry: NormalAttribute(name, *_numbers(entry, 2, "normal")),
    "exponential": lambda name, entry: ExponentialAttribute(
        name, _number(entry, "exponential takes the mean, a number")
    ),
    "boolean": lambda name, entry: BooleanAttribute(
        name, _number(entry, "boolean takes the probability of true, a number from 0 to 1")
    ),
    "constant": lambda name, entry: ConstantAttribute(name, _value(entry)),
}


_DURATIONS: Mapping[str, Callable[[yaml.Node], Duration]] = {
    "fixed": lambda entry: FixedDuration(_duration_us(entry)),
    "uniform": lambda entry: UniformDuration(*map(_duration_us, _items(entry, 2, "uniform"))),
    "exponential": lambda entry: ExponentialDuration(_duration_us(entry)),
    "normal": lambda entry: NormalDuration(*map(_duration_us, _items(entry, 2, "normal"))),
}


def _only_pair(entry: yaml.Node, forms: Mapping[str, object]) -> tuple[str, yaml.Node]:
    if len(keys_of(entry)) == 1 and keys_of(entry)[0] in forms:
        ((key, value),) = entry.value
        return key.value, value
    raise _Unfit(f"write a mapping with exactly one key of {', '.join(forms)}")


def _items(entry: yaml.Node, count: int, name: str) -> list[yaml.Node]:
    if not isinstance(entry, yaml.SequenceNode) or len(entry.value) != count:
        raise _Unfit(f"{name} takes a list of {count}")
    items: list[yaml.Node] = entry.value
    return items


def _numbers(entry: yaml.Node, count: int, name: str) -> tuple[float, ...]:
    return tuple(_number(item, f"{name} takes a list of {count} numbers") for item in _items(entry, count, name))


def _number(entry: yaml.Node, message: str) -> float:
    number = number_of(entry)
    if number is None:
        raise _Unfit(message)
    return number


def _whole(entry: yaml.Node, message: str) -> int:
    number = whole_number(entry)
    if number is None:
        raise _Unfit(message)
    return number


def _duration_us(entry: yaml.Node) -> int:
    if not isinstance(entry, yaml.ScalarNode):
        raise _Unfit("a duration is a number and a unit, such as 5 min")
    return parse_duration_us(entry.value)


def _value(entry: yaml.Node) -> Value:
    if not isinstance(entry, yaml.ScalarNode) or entry.tag == NULL_TAG:
        raise _Unfit("a value is a text, a number, true or false")
    text: str = entry.value
    if entry.style:
        return text
    if text in _TRUTHS:
        return _TRUTHS[text]
    whole, number = whole_number(entry), number_of(entry)
    if number is not None:
        return number if whole is None or "." in text else whole
    if entry.tag != TEXT_TAG:
        raise _Unfit(f'put quotes around "{text}", or write a number, true or false')
    return text
