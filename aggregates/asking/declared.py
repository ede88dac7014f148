"""The questions that an aggregate answers: the columns of its index, and how documents of questions are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregates.asking.questions import FUNCTIONS, NUMERIC, AskedValue, HeldWindow, Question
from aggregates.asking.values import Column
from aggregates.columns import EventColumns
from aggregates.document import AggregateBody
from aggregates.errors import AggregateRefused, QuestionRefused
from aggregates.values import MOST_VALUES, read_value
from aggregates.windows import read_duration
from streams import did_you_mean, duration_text, listed, shown

KEY = "#key"
"""A hidden attribute: the correlation key of each event, needed to split saved states. No question can name it."""

_MEMBERS = ("by", "where", "values", "window", "explain")


def asked_values(body: AggregateBody) -> dict[str, AskedValue]:
    """Return the values of an aggregate that questions may ask for, by name."""
    return {
        value.name: AskedValue(value.function, value.argument or None)
        for value in body.values
        if value.function in FUNCTIONS
    }


@lru_cache(maxsize=256)
def held_window(body: AggregateBody) -> HeldWindow:
    """Return what the question index of an aggregate holds: attributes, measures and the window length."""
    values = asked_values(body).values()
    counted = [value.attribute for value in values if value.attribute and value.function not in NUMERIC]
    measures = [value.attribute for value in values if value.attribute and value.function in NUMERIC]
    attributes = tuple(dict.fromkeys([KEY, *body.ask, *counted]))
    return HeldWindow(
        attributes=attributes,
        measures=tuple(dict.fromkeys(measures)),
        span_us=body.window.size,
        unfiltered=frozenset(attributes).difference(body.ask),
    )


def columns_of(body: AggregateBody, events: EventColumns) -> tuple[NDArray[np.int64], dict[str, Column]]:
    """Return the times and the columns of events for ``QuestionIndex.insert``.

    Rows that are not events (retractions, ends of transactions) are left out.
    """
    counting, window = events.counting, held_window(body)
    arguments = dict(zip(body.arguments, counting.arguments, strict=True))
    measures = {name: arguments[name].numbers for name in window.measures}
    attributes = {name: column.to_list() for name, column in arguments.items() if name in window.attributes}
    ask_columns = dict(zip(body.ask, counting.asked, strict=True))
    return counting.times_us, {**measures, **attributes, **ask_columns, KEY: counting.keys}


def read_question(body: AggregateBody, document: Mapping[str, Any], until_us: int | None = None) -> Question:
    """Read a question. The members ``by``, ``where``, ``values`` and ``window`` are optional.

    ``values`` are names of values, or objects that define new values: ``{"x": "sum(price)"}``. The member ``explain``,
    which requests a description of the index, is not read here.

    Raises:
        QuestionRefused: A member is unknown, or requests something that the aggregate does not hold.
    """
    if not body.ask:
        raise QuestionRefused("the aggregate answers no questions; 'ask' with 'by' in its document lets it", field="")
    for member in document:
        if member not in _MEMBERS:
            hint = did_you_mean(str(member), _MEMBERS)
            raise QuestionRefused(
                f"a question has no member {shown(member)}{hint}; it has {listed(_MEMBERS)}", field=str(member)
            )
    by, where = _names(document, "by"), _where(body, document)
    for name in by:
        _require(name, body.ask, "by", "questions are by")
    if len(set(by)) < len(by):
        raise QuestionRefused(f"by: an attribute is repeated in {listed(by)}", field="by")
    values = _values(body, document.get("values", []))
    if both := [name for name in values if name in by]:
        raise QuestionRefused(f"values.{both[0]}: the name is that of a group's attribute", field=f"values.{both[0]}")
    return Question(by=by, where=where, values=values, window_us=_window_us(body, document), until_us=until_us)


def _values(body: AggregateBody, member: Any) -> dict[str, AskedValue]:
    """Return the values that a question names or defines, by default all values for which questions may ask."""
    parts = [member] if isinstance(member, str | Mapping) else member
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str | Mapping) for part in parts):
        raise QuestionRefused(
            f"values: a list of names, or an object such as {{x: sum(price)}}, and not {shown(member)}", field="values"
        )
    known = asked_values(body)
    if all(part == {} for part in parts):
        if not known:
            raise QuestionRefused(
                f"values: the aggregate has none that questions may ask for; these are {listed(FUNCTIONS)}. Name new "
                "ones, such as {x: count()}",
                field="values",
            )
        return known
    values: dict[str, AskedValue] = {}
    for part in parts:
        if isinstance(part, str):
            _require(part, list(known), "values", "questions may ask for")
        for name, value in [(part, known[part])] if isinstance(part, str) else _new_values(body, part):
            if values.setdefault(name, value) != value:
                raise QuestionRefused(f"values.{name}: the name has two meanings", field=f"values.{name}")
    if len(values) > MOST_VALUES:
        raise QuestionRefused(f"values: {len(values)} values, and at most {MOST_VALUES} are allowed", field="values")
    return values


def _new_values(body: AggregateBody, texts: Mapping[Any, Any]) -> Iterator[tuple[str, AskedValue]]:
    window = held_window(body)
    attributes = {_path(name): name for name in window.attributes if name != KEY}
    numbers = attributes | {_path(name): name for name in window.measures}
    for name, text in texts.items():
        fault = f"values, {name}: {shown(text)} cannot be computed from the index"
        try:
            value = read_value(str(name), text)
        except AggregateRefused as error:
            value, fault = None, error.message
        if value is not None and value.function in FUNCTIONS:
            allowed = attributes if value.function == "distinct" else numbers
            if not value.argument or _path(value.argument) in allowed:
                yield value.name, AskedValue(value.function, allowed[_path(value.argument)] if value.argument else None)
                continue
        raise QuestionRefused(
            f"{fault}. Questions compute count(), distinct of {listed([*attributes.values()])}, and count, sum, avg, "
            f"min and max of {listed([*numbers.values()])}",
            field=f"values.{name}",
        )


def _path(name: str) -> str:
    return name.removeprefix("data.") or name


def _where(body: AggregateBody, document: Mapping[str, Any]) -> Mapping[str, Any]:
    where = document.get("where", {})
    if not isinstance(where, Mapping):
        raise QuestionRefused("where: an object of attributes with the values that they must have", field="where")
    for name, value in where.items():
        _require(name, body.ask, "where", "questions are by")
        if not isinstance(value, bool | int | float | str | None):
            raise QuestionRefused(
                f"where.{name}: an attribute equals a text, a number, true or false; got {shown(value)}",
                field=f"where.{name}",
            )
    return where


def _names(document: Mapping[str, Any], member: str) -> list[str]:
    value = document.get(member, [])
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise QuestionRefused(f"{member}: a list of names, and not {shown(value)}", field=member)
    return list(names)


def _require(name: object, known: Iterable[str], member: str, what: str) -> None:
    names = list(known)
    if name not in names:
        hint = did_you_mean(str(name), names)
        raise QuestionRefused(f"{member}: {shown(name)} is unknown{hint}; {what} {listed(names)}", field=member)


def _window_us(body: AggregateBody, document: Mapping[str, Any]) -> int | None:
    if "window" not in document:
        return None
    try:
        window_us = read_duration(document["window"])
    except AggregateRefused as error:
        raise QuestionRefused(error.message, field="window") from error
    if window_us > body.window.size:
        held = duration_text(body.window.size)
        raise QuestionRefused(
            f"window: the aggregate keeps events for {held} only; ask for at most that", field="window"
        )
    return window_us
