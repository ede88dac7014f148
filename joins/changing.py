"""Compatibility of two versions of a join: whether the later one can keep the rows of the earlier one."""

from __future__ import annotations

from joins.document import JoinBody


def keeps_rows(before: JoinBody, after: JoinBody) -> bool:
    """Whether a new version of a join changes only members that can change while the join runs.

    These are windows, closings of keys, the condition, the handling of late events, limits, and the members and type of
    the derived events. With other inputs, keys or event types, another ``emit``, ``outer`` or ``wait``, or with
    ``where`` added or removed in a join with ``outer``, the state might contain events that the new version would never
    have held, or lack events that it needs.
    """
    return _fixed(before) == _fixed(after)


def _fixed(body: JoinBody) -> object:
    inputs = [(one.alias, one.stream, one.key, frozenset(one.types), one.retractions) for one in body.inputs]
    knows_joined = body.where is not None and bool(body.reporting)  # by the condition, not by keys
    return inputs, body.emit, frozenset(body.outer), body.waits, knows_joined
