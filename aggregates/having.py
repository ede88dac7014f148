"""The condition ``having`` over a group's values, its values at earlier times, and values of all groups."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from aggregates.errors import AggregateRefused
from aggregates.windows import read_duration

# Quoted texts, quoted names and comments are passed over, as they may contain what looks like a call.
_PARTS = re.compile(
    r"--[^\n]*|'[^']*'?|`[^`]*`?"
    r"|\bbefore\s*\(\s*(?P<earlier>[A-Za-z_]\w*)\s*,(?P<ago>[^()]*)\)"
    r"|\ball\s*\(\s*(?P<overall>[A-Za-z_]\w*)\s*\)"
    r"|(?<!\.)\brow\.(?P<column>`[^`]+`|[A-Za-z_]\w*)"
)


@dataclass(frozen=True, slots=True)
class Earlier:
    """A value of the same group at an earlier time, which ``having`` reads as ``before(n, 7 d)``.

    Attributes:
        name: The name by which the condition reads the earlier value.
        of: The name of the value in the aggregate.
        ago_us: Age of the value, in microseconds.
    """

    name: str
    of: str
    ago_us: int


@dataclass(frozen=True, slots=True)
class Having:
    """The condition ``having`` over the values of a group.

    Attributes:
        text: The condition in the language of conditions. Each ``before(...)`` or ``all(...)`` is replaced by a quoted
            name, and ``row.column`` by a lookup with the key of the row.
        earlier: The earlier values that the condition reads.
        overall: Names of the values over all groups: a pair of the name in the condition and the name in the aggregate.
    """

    text: str
    earlier: tuple[Earlier, ...] = ()
    overall: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which the condition reads earlier values, then those of values over all groups."""
        return (*(value.name for value in self.earlier), *(name for name, _ in self.overall))

    @property
    def longest_us(self) -> int:
        """The greatest age of values that the condition reads, or 0 if it reads current values only."""
        return max((value.ago_us for value in self.earlier), default=0)


def read_having(text: object, values: Collection[str], rows_of: str | None = None) -> Having:
    """Read the text of ``having``, a condition over the values of an aggregate.

    If groups are rows of the table ``rows_of``, the condition may read its columns.

    Raises:
        AggregateRefused: The condition is no text, or ``before`` or ``all`` names no value.
    """
    if not isinstance(text, str) or not text.strip():
        raise AggregateRefused("'having' is a condition over the values, such as 'n >= 20 AND users > 5'")
    earlier: dict[str, Earlier] = {}
    overall: dict[str, str] = {}

    def known(name: str) -> str:
        if name not in values:
            raise AggregateRefused(
                f"having: {name!r} is none of the values, which are {', '.join(values)}", field="having"
            )
        return name

    def rewritten(part: re.Match[str]) -> str:
        if part["earlier"]:
            ago_us = read_duration(part["ago"].strip(), "having")
            name = f"before({part['earlier']}, {ago_us} us)"
            earlier[name] = Earlier(name, known(part["earlier"]), ago_us)
            return f"`{name}`"
        if part["overall"]:
            name = f"all({part['overall']})"
            overall[name] = known(part["overall"])
            return f"`{name}`"
        if part["column"] and rows_of is not None:
            return f"lookup(`{rows_of}`, row).{part['column']}"
        return part[0]

    return Having(_PARTS.sub(rewritten, text), tuple(earlier.values()), tuple(overall.items()))
