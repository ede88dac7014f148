"""Whether another version of a join can go on with what the version before it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from joins.document import JoinBody, read_join


def keeps_rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether one document of a join differs from another in what can change while it runs.

    That is windows, when keys are finished, the condition, what happens to events that come later, what is emitted and
    its type. With other inputs, keys or event types, another ``emit`` or ``outer``, or ``where`` for the first or the
    last time in a join with ``outer``, what is held may be what the join would never have held, or lack what it needs.

    Args:
        before: Its own members, as they are.
        after: As they are to be.

    Raises:
        JoinRefused: One of them is not the document of a join.
    """
    return _fixed(read_join(before)) == _fixed(read_join(after))


def _fixed(body: JoinBody) -> object:
    inputs = [(one.alias, one.stream, one.key, frozenset(one.types), one.retractions) for one in body.inputs]
    knows_joined = body.where is not None and bool(body.reporting)  # by the condition, not by keys
    return inputs, body.emit, frozenset(body.outer), body.waits, knows_joined
