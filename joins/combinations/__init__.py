"""Combinations of a join beyond keys and windows: the condition between inputs, and events without a usable key."""

from joins.combinations.conditions import Condition, Conditional, Conditions, unconditional
from joins.combinations.unkeyed import COUNT, FIGURE, UnkeyedEvents, lone_inputs
