"""Conditions between the inputs of a join, in the condition language of patterns.

Joins and patterns know nothing of each other, so the function that reads conditions is handed to the join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from joins import Column, Condition, JoinBody, Placed
from nfa import CombinedCondition, PatternRefused, parse_condition
from shards.errors import OperatorRefused


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """A condition of a join.

    Attributes:
        reads: The columns that it reads.
    """

    reads: tuple[Column, ...]
    _parsed: CombinedCondition

    def holds(self, values: Sequence[Placed], size: int) -> NDArray[np.bool_]:
        """See ``joins.Condition``."""
        return self._parsed.holds(values, size)


def condition_of(body: JoinBody) -> Condition | None:
    """The condition of a join; None: it has none.

    Raises:
        OperatorRefused: Its text cannot be read, or is refused.
    """
    if body.where is None:
        return None
    try:
        parsed = parse_condition(body.where, [one.alias for one in body.inputs])
    except PatternRefused as error:
        raise OperatorRefused(f"'where' of a join: {error.message}", field="where") from error
    reads = tuple(
        Column(name="", alias=alias, function=cast("Any", leaf.removeprefix("#")))
        if isinstance(leaf, str)
        else Column(name="", alias=alias, function="value", path=leaf)
        for alias, leaf in parsed.reads
    )
    return JoinCondition(reads, parsed)
