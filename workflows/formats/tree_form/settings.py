"""The simulation settings of a tree file: attributes, durations and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
from workflows.formats.entries import Entry, Listing, Mapped, Scalar
from workflows.formats.tree_form.problems import Problems

_TRUTHS = {"true": True, "false": False}


class _Unfit(Exception):
    """A setting has the wrong form; the message names the right one."""


def read_duration(entry: Entry, path: str, problems: Problems) -> Duration | None:
    """The duration of an activity: ``5 min``, or a mapping with one key; None after a problem."""
    try:
        if isinstance(entry, Scalar):
            return FixedDuration(_duration_us(entry))
        name, value = _only_pair(entry, _DURATIONS)
        return _DURATIONS[name](value)
    except (_Unfit, InvalidWorkflow) as error:
        problems.refuse(path, entry, str(error))
        return None


def read_attributes(entry: Entry, path: str, problems: Problems) -> tuple[Attribute, ...]:
    """A mapping from names of attributes to their generators; attributes with problems are left out."""
    if not isinstance(entry, Mapped):
        problems.refuse(
            path, entry, "attributes are a mapping from names to how each is drawn, such as {price: {normal: [9, 1]}}"
        )
        return ()
    attributes: list[Attribute] = []
    for key, value in entry.pairs:
        try:
            attributes.append(_attribute(key.text, value))
        except (_Unfit, InvalidWorkflow) as error:
            problems.refuse(f"{path}.{key.text}", key, str(error))
    return tuple(attributes)


def read_probability(entry: Entry, path: str, problems: Problems) -> float | None:
    """A number from 0 to 1; None after a problem."""
    number = entry.number if isinstance(entry, Scalar) else None
    if number is None or not 0.0 <= number <= 1.0:
        problems.refuse(path, entry, "a probability is a number from 0 to 1")
        return None
    return number


def whole_number(entry: Entry) -> int | None:
    """The whole number of an entry; None for anything else."""
    number = entry.number if isinstance(entry, Scalar) else None
    return int(number) if number is not None and number == int(number) and abs(number) <= 2**53 else None


def _attribute(name: str, entry: Entry) -> Attribute:
    if not name.strip():
        raise _Unfit("an attribute needs a name")
    if isinstance(entry, Scalar):
        return ConstantAttribute(name, _value(entry))
    generator, value = _only_pair(entry, _ATTRIBUTES)
    return _ATTRIBUTES[generator](name, value)


def _integer(name: str, entry: Entry) -> Attribute:
    if isinstance(entry, Scalar):
        return IntegerAttribute(name, _whole(entry, "integer takes the largest number, or [least, largest]"))
    least, most = (_whole(item, "integer takes whole numbers") for item in _items(entry, 2, "integer"))
    return IntegerAttribute(name, most - least + 1, least)


def _threshold(name: str, entry: Entry) -> Attribute:
    names = ("at", "highest", "fail", "also")
    if not isinstance(entry, Mapped) or not {"at", "highest", "fail"} <= set(entry.keys) <= set(names):
        raise _Unfit("threshold takes at, highest and fail, and maybe also: more names for the same number")
    settings = {key.text: value for key, value in entry.pairs}
    also = settings.get("also", Listing((), entry.line))
    if not isinstance(also, Listing):
        raise _Unfit("also is a list of names")
    more = [item.text for item in also.items if isinstance(item, Scalar) and item.is_text]
    if len(more) < len(also.items):
        raise _Unfit("also is a list of names")
    return ThresholdAttribute(
        names=(name, *more),
        fail_ratio=_number(settings["fail"], "fail is a number from 0 to 1"),
        threshold=_whole(settings["at"], "at is a whole number"),
        highest=_whole(settings["highest"], "highest is a whole number"),
    )


def _choice(name: str, entry: Entry) -> Attribute:
    if isinstance(entry, Mapped):
        weights = tuple(_number(value, "a weight is a number, 0 or more") for _, value in entry.pairs)
        return ChoiceAttribute(name, tuple(_value(key) for key, _ in entry.pairs), weights)
    if isinstance(entry, Listing):
        return ChoiceAttribute(name, tuple(map(_value, entry.items)))
    raise _Unfit("choice takes a list of values, or a mapping from values to weights")


_ATTRIBUTES: Mapping[str, Callable[[str, Entry], Attribute]] = {
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


_DURATIONS: Mapping[str, Callable[[Entry], Duration]] = {
    "fixed": lambda entry: FixedDuration(_duration_us(entry)),
    "uniform": lambda entry: UniformDuration(*map(_duration_us, _items(entry, 2, "uniform"))),
    "exponential": lambda entry: ExponentialDuration(_duration_us(entry)),
    "normal": lambda entry: NormalDuration(*map(_duration_us, _items(entry, 2, "normal"))),
}


def _only_pair(entry: Entry, known: Mapping[str, object]) -> tuple[str, Entry]:
    if isinstance(entry, Mapped) and len(entry.pairs) == 1 and entry.keys[0] in known:
        key, value = entry.pairs[0]
        return key.text, value
    raise _Unfit(f"write a mapping with exactly one key of {', '.join(known)}")


def _items(entry: Entry, count: int, name: str) -> tuple[Entry, ...]:
    if not isinstance(entry, Listing) or len(entry.items) != count:
        raise _Unfit(f"{name} takes a list of {count}")
    return entry.items


def _numbers(entry: Entry, count: int, name: str) -> tuple[float, ...]:
    return tuple(_number(item, f"{name} takes a list of {count} numbers") for item in _items(entry, count, name))


def _number(entry: Entry, message: str) -> float:
    number = entry.number if isinstance(entry, Scalar) else None
    if number is None:
        raise _Unfit(message)
    return number


def _whole(entry: Entry, message: str) -> int:
    number = whole_number(entry)
    if number is None:
        raise _Unfit(message)
    return number


def _duration_us(entry: Entry) -> int:
    if not isinstance(entry, Scalar):
        raise _Unfit("a duration is a number and a unit, such as 5 min")
    return parse_duration_us(entry.text)


def _value(entry: Entry) -> Value:
    if not isinstance(entry, Scalar) or entry.is_null:
        raise _Unfit("a value is a text, a number, true or false")
    if entry.is_quoted:
        return entry.text
    if entry.text in _TRUTHS:
        return _TRUTHS[entry.text]
    number = whole_number(entry)
    if number is not None and "." not in entry.text:
        return number
    if entry.number is not None:
        return entry.number
    if not entry.is_text:
        raise _Unfit(f'put quotes around "{entry.text}", or write a number, true or false')
    return entry.text
