"""How far an outside form may reach: bounded depth, integers that 64 bits carry."""

from __future__ import annotations

from streams.errors import EventRejected

_DEEPEST = 100


def check_extent(value: object) -> None:
    """Refuse what is nested too deeply or holds an integer that the log cannot carry, before anything descends.

    Raises:
        EventRejected: It is, or does.
    """
    level, depth = [value], 1
    while level:
        below: list[object] = []
        for item in level:
            if isinstance(item, dict | list):
                if depth > _DEEPEST:
                    raise EventRejected(f"the event is nested more than {_DEEPEST} levels deep; send a flatter one")
                below.extend(item.values() if isinstance(item, dict) else item)
            elif isinstance(item, int) and not -(2**63) <= item < 2**64:
                raise EventRejected("the event contains an integer beyond 64 bits; send it as a string")
        level, depth = below, depth + 1
