"""Counts that changed on purpose since the newest recorded release; recording the next release empties the list."""

from __future__ import annotations

from benchmarks.guard.records import WantedChange

_SIX_DIGITS = "times of results have six digits"

WANTED = {
    "bytes written by columns": WantedChange(since="0.1.0", count=7_718_546, reason=_SIX_DIGITS),
    "bytes written by values": WantedChange(since="0.1.0", count=7_718_546, reason=_SIX_DIGITS),
}
