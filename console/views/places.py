"""Open transactions by the step that they have reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from console.page import Page, all_of

LARGEST: Final = 200
_MOST_TYPES: Final = 40
_AGE_S: Final = 5.0


async def open_by_type(page: Page, stream: str, cases: Mapping[str, Any]) -> dict[str, int]:
    """The number of open transactions by the type of their newest event, the most frequent first.

    ``cases`` are the oldest open transactions; where there are more of them, each type is asked for.
    """
    counts = Counter(case["last_type"] or "" for case in cases["items"])
    if cases["open_count"] > len(cases["items"]):
        types = {name for case in cases["items"] if (found := case["may_follow"]) for name in _types(found)}
        wanted = sorted(types | {name for name in counts if name})[:_MOST_TYPES]
        answers = await all_of(
            *(page.api.recent("/traces", stream=stream, last_type=name, limit=1, age_s=_AGE_S) for name in wanted)
        )
        counts = Counter({name: answer["matching_count"] for name, answer in zip(wanted, answers, strict=True)})
    return {name: count for name, count in counts.most_common() if count}


def _types(following: Mapping[str, list[str]]) -> list[str]:
    return [*following["possible_types"], *following["excluded_types"]]
