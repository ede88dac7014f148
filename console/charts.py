"""Small charts of results over time, as data for templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from console.formats import parse, span

_WIDTHS_S: Final = (60, 300, 900, 3_600, 4 * 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)
_HOUR_S: Final = 3_600
_MOST_BARS: Final = 48
HEIGHT: Final = 64


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a histogram. ``top`` and ``height`` are in units of the drawing, in which each bar is 10 units wide."""

    x: int
    top: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of results over time.

    Attributes:
        width: The duration of a bar, as text.
        most: The highest count of a bar.
        total: The number of results in all bars.
        older: The number of results that are too old for a bar.
    """

    bars: Sequence[Bar]
    width: str
    first: str
    last: str
    most: int
    total: int
    older: int = 0

    @property
    def span(self) -> int:
        """The width of the whole drawing, in its units."""
        return 10 * len(self.bars)


def histogram(times: Iterable[str], noun: str) -> Histogram | None:
    """Return a histogram of times, or None without times.

    All bars cover the same round duration, the shortest that needs at most 48 bars. Times that are too old for 48 bars
    of the longest duration are left out.
    """
    seconds = sorted(moment.timestamp() for moment in map(parse, times) if moment is not None)
    if not seconds:
        return None
    whole = seconds[-1] - seconds[0]
    width = next((width for width in _WIDTHS_S if whole / width < _MOST_BARS - 1), _WIDTHS_S[-1])
    counts = Counter(int(second // width) for second in seconds)
    return _drawn(counts, width, noun, max(min(counts), max(counts) - _MOST_BARS + 1), max(counts))


def hourly(counts: Mapping[int, int], noun: str, newest: int) -> Histogram | None:
    """Return the histogram of the 48 hours that end with the hour ``newest``, or None without results.

    ``counts`` maps an hour to its number of results. An hour is given as the number of hours since 1970.
    """
    first = newest - _MOST_BARS + 1
    shown_counts = {hour: count for hour, count in counts.items() if hour >= first}
    return _drawn(shown_counts, _HOUR_S, noun, first, newest) if shown_counts else None


def _drawn(counts: Mapping[int, int], width: int, noun: str, first: int, last: int) -> Histogram:
    older = sum(count for slot, count in counts.items() if slot < first)
    most = max(count for slot, count in counts.items() if slot >= first)
    bars = [
        Bar(
            x=10 * (slot - first),
            top=round(HEIGHT * (1 - counts.get(slot, 0) / most), 2),
            height=round(HEIGHT * counts.get(slot, 0) / most, 2),
            title=f"{_time_text(slot * width)}: {counts.get(slot, 0):,} {noun}",
        )
        for slot in range(first, last + 1)
    ]
    ends = _time_text(first * width), _time_text((last + 1) * width)
    return Histogram(bars, span(width), *ends, most, sum(counts.values()) - older, older)


def _time_text(second: float) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M} UTC"
