"""Which combinations a join has, besides what windows and keys say: a condition, and events without a usable key."""

from joins.combinations.conditions import Condition, Conditional, Conditions, Placed, unconditional
from joins.combinations.unkeyed import COUNT, FIGURE, UnkeyedEvents, lone_inputs

__all__ = [
    "COUNT",
    "FIGURE",
    "Condition",
    "Conditional",
    "Conditions",
    "Placed",
    "UnkeyedEvents",
    "lone_inputs",
    "unconditional",
]
