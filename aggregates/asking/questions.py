"""Questions over the events of a window: groups, equalities, values and a sub-window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from aggregates.asking.errors import QuestionRefused
from aggregates.asking.values import Scalar
from streams import did_you_mean, listed, shown

ValueFunction: TypeAlias = Literal["count", "sum", "avg", "min", "max", "distinct"]
FUNCTIONS: tuple[ValueFunction, ...] = get_args(ValueFunction)
NUMERIC: tuple[ValueFunction, ...] = ("sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class AskedValue:
    """A value of each group: ``count`` without an attribute counts events, otherwise those where it is not null."""

    function: ValueFunction
    attribute: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question.

    Attributes:
        by: Attributes that make the groups; none: one group, which exists even without events.
        where: Attributes with the value that they must have; null equals nothing, as in SQL.
        window_us: Only events less old than this; None: as old as the window of the index allows.
        until_us: The time at which the window ends, unless the index knows a later one; None: its own time.
    """

    values: Mapping[str, AskedValue]
    by: Sequence[str] = ()
    where: Mapping[str, Scalar] = field(default_factory=dict)
    window_us: int | None = None
    until_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWindow:
    """What an index holds: attributes, measures, and the length of the window of its events.

    ``unfiltered``: attributes that no question fixes, so the layout of the index leaves them out.
    """

    attributes: tuple[str, ...]
    measures: tuple[str, ...]
    span_us: int
    unfiltered: frozenset[str] = frozenset()

    def check(self, question: Question) -> None:
        """Raise ``QuestionRefused`` if the question cannot be answered from these columns and this window."""
        for member, names in (("by", question.by), ("where", question.where)):
            for name in names:
                self._known(name, self.attributes, member, "groups and filters have")
        if len(set(question.by)) < len(question.by):
            raise QuestionRefused(f"by: an attribute is repeated in {listed(list(question.by))}", field="by")
        for name, value in question.where.items():
            if not isinstance(value, bool | int | float | str | None):
                raise QuestionRefused(
                    f"where.{name}: an attribute equals a text, a number, true or false; got {shown(value)}",
                    field=f"where.{name}",
                )
        if not question.values:
            raise QuestionRefused("values: a question asks for one value at least, such as count()", field="values")
        for name, asked in question.values.items():
            self._check_value(name, asked, question.by)
        self._check_window(question.window_us)

    def _check_value(self, name: str, asked: AskedValue, by: Sequence[str]) -> None:
        member = f"values.{name}"
        if name in by:
            raise QuestionRefused(f"{member}: the name is that of a group's attribute", field=member)
        if asked.function not in FUNCTIONS:
            hint = did_you_mean(str(asked.function), list(FUNCTIONS))
            raise QuestionRefused(
                f"{member}: questions have no function {shown(asked.function)}{hint}; they have {listed(FUNCTIONS)}",
                field=member,
            )
        if asked.attribute is None:
            if asked.function != "count":
                raise QuestionRefused(f"{member}: {asked.function} needs an attribute", field=member)
        elif asked.function in NUMERIC:
            self._known(asked.attribute, self.measures, member, f"{asked.function} has the measures")
        elif asked.function == "distinct":
            self._known(asked.attribute, self.attributes, member, "distinct has")
        else:
            self._known(asked.attribute, (*self.attributes, *self.measures), member, "count has")

    def _known(self, name: str, known: Sequence[str], member: str, what: str) -> None:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise QuestionRefused(
                f"{member}: the index does not hold {shown(name)}{hint}; {what} {listed(list(known)) or 'none'}",
                field=member,
            )

    def _check_window(self, asked_us: int | None) -> None:
        if asked_us is None:
            return
        if asked_us < 0:
            raise QuestionRefused("window: a window is not negative", field="window")
        if asked_us > self.span_us:
            raise QuestionRefused("window: longer than the window that the index holds", field="window")
