"""The description of a function: parameters, kind of the result, evaluation over columns, and documentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias
from typing import Literal as OneOf

import numpy as np
from numpy.typing import NDArray

Kind: TypeAlias = OneOf["text", "number", "boolean", "time", "any"]
"""The kind of a value: a ``time`` is a number of microseconds or a text with a date, ``any`` depends on the events."""

Result: TypeAlias = Sequence[Any] | NDArray[Any]
"""Plain values with None for null, or an array of int64, bool or float64, in which infinities and NaN are null."""

Column: TypeAlias = Callable[..., Result]
Examples: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function.

    Attributes:
        kind: Kind of its values. Values of another kind count as null.
        fault: None if arguments may be any expressions. Otherwise arguments must be constants. ``fault(constant)`` then
            returns why a constant is invalid, or None if it is valid.
    """

    name: str
    kind: Kind
    fault: Callable[[Any], str | None] | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function of values. Its result is null if an argument is null, or is not of its parameter's kind.

    Attributes:
        optional: The number of parameters at the end that may be omitted.
        is_repeated: Whether the last parameter may be given several times.
        column: Computes the results from one column for each argument, without the rows that have a null. A column is a
            list of texts, an array of float64 or bool, or times. Times are an int64 array of microseconds, or a list of
            microseconds and texts. Constants are passed unchanged. None if the function is an operator on values that
            may be null.
        spans_events: Whether its arguments may belong to several events in conditions between steps. Such a function is
            also implemented in ``nfa.kernels.conditions``.
        written: The function's name in pattern text, if ``name`` differs because an aggregate has the same name.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Kind
    column: Column | None
    summary: str
    examples: Examples = ()
    _: KW_ONLY
    optional: int = 0
    is_repeated: bool = False
    spans_events: bool = False
    written: str = ""

    @property
    def word(self) -> str:
        """The function's name in pattern text."""
        return self.written or self.name

    @property
    def signature(self) -> str:
        """The call with the names of its parameters, as in ``substr(text, start, [length])``."""
        first = len(self.parameters) - self.optional
        names = [
            parameter.name if place < first else f"[{parameter.name}]"
            for place, parameter in enumerate(self.parameters)
        ]
        return f"{self.word}({', '.join(names)}{', …' if self.is_repeated else ''})"

    def parameters_of(self, number: int) -> tuple[Parameter, ...] | None:
        """Return the parameter of each of ``number`` arguments, or None if the function does not take this number."""
        most = len(self.parameters)
        if number > most and self.is_repeated:
            return self.parameters + self.parameters[-1:] * (number - most)
        return self.parameters[:number] if most - self.optional <= number <= most else None


def of_each(function: Callable[..., Any]) -> Callable[..., Result]:
    """Return a function over columns that calls the given function for each row."""

    def column(*columns: Any) -> Result:
        lists = [values.tolist() if isinstance(values, np.ndarray) else values for values in columns]
        return [function(*row) for row in zip(*lists, strict=True)]

    return column


def of_each_distinct(function: Callable[[str], Any], texts: Sequence[str]) -> list[Any]:
    """Return the results of a function for many texts. The function is called once for each distinct text."""
    results = {text: function(text) for text in dict.fromkeys(texts)}
    return [results[text] for text in texts]
