"""Conversion of saved state of the previous release."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any


def from_format_1(head: Mapping[str, Any], sections: Mapping[str, bytes]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Convert head and sections of saved state from format 1 to format 2. Format 1 supported patterns only.

    Args:
        head: Has the members of each stream under ``streams``, and the number of its sections under ``sections``.
        sections: The sections by number. The first section of a stream belongs to its matcher. The second has its
            waiting events, and is missing if the stream can have none.
    """
    sizes = head.get("sections", [1] * len(sections))
    places: list[dict[str, Any]] = []
    named_sections: dict[str, bytes] = {}
    streams = zip(head["streams"], accumulate(sizes, initial=0), sizes, strict=False)
    for number, (saved, first, size) in enumerate(streams):
        places.append(
            {
                "declaration": saved["declaration"],
                "route": saved.get("route", ""),
                "late": saved.get("late", {}),
                "hosts": {"pattern": {"constraints": saved["constraints"]}},
                **({"order": saved["order"]} if "order" in saved else {}),
            }
        )
        names = ("pattern/matcher", "waiting")[:size]
        named_sections |= {f"{number}/{name}": sections[str(first + place)] for place, name in enumerate(names)}
    return {"shard": head["shard"], "position": head["position"], "places": places}, named_sections
