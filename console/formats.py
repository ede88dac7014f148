"""Formats of times, numbers and texts on pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from markupsafe import Markup, escape

_SECONDS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
NOTHING: Final = "\N{EN DASH}"
_NONE: Final = Markup('<span class="none" title="none">{}</span>').format(NOTHING)
_TOKEN: Final = re.compile(
    r"(?P<comment>--[^\n]*)|(?P<text>'(?:[^']|'')*')|(?P<number>\b\d+(?:\.\d+)?\b)|(?P<word>\b[A-Z][A-Z]+\b)"
)
_KEYWORDS: Final = frozenset(
    (
        "PATTERN EVENT SEQ AND OR NOT WHERE WITHIN RETURN INTO KEY ON MATCH SKIP NEXT ANY AS IN LIKE BETWEEN CASE WHEN "
        "THEN ELSE END IS NULL TRUE FALSE TABLE FOR EACH ROW OF BUSINESS DAYS PARTITION TIMEOUT LATEST GREEDY TO"
    ).split()
)


def parse(time: str | None) -> datetime | None:
    """Parse a time of the API, or return None for an empty text."""
    return None if not time else datetime.fromisoformat(time)


def when(time: str | None) -> Markup:
    """Format a time as HTML, in UTC and to the second. The tooltip has the time as the API gave it."""
    parsed = parse(time)
    if parsed is None:
        return _NONE
    short = parsed.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return Markup('<time datetime="{0}" title="{0}">{1} <span class="zone">UTC</span></time>').format(time, short)


def ago(time: str | None) -> str:
    """Format how long ago a time was, by this machine's clock."""
    parsed = parse(time)
    if parsed is None:
        return "never"
    seconds = (datetime.now(UTC) - parsed).total_seconds()
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"


def between(first: str | None, last: str | None) -> str:
    """Format the duration between two times."""
    start, end = parse(first), parse(last)
    return "" if start is None or end is None else span((end - start).total_seconds())


def span(seconds: float | None) -> str:
    """Format a duration in its two largest units."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{1_000 * seconds:.0f} ms"
    parts: list[str] = []
    remaining = round(seconds)
    for size, unit in _SECONDS:
        if remaining >= size or parts:
            count, remaining = divmod(remaining, size)
            parts += [f"{count} {unit}"] if count else []
            if len(parts) == 2 or (parts and unit == "min" and count):
                break
    return " ".join(parts[:2]) or "0 s"


def number(value: float | None, digits: int = 0) -> str:
    """Format a number with thousands separators."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def figure(value: float) -> str:
    """Format a computed number, such as 3, 3.14, or 0.00314. Whole numbers have no decimals."""
    if value == round(value, 0):
        return number(value)
    return number(value, 2) if abs(value) >= 1 else f"{value:.3g}"


def rate(value: float | None) -> str:
    """Format a rate per second. Large rates are whole numbers."""
    return NOTHING if value is None else f"{value:,.0f}/s" if value >= 10 or value == 0 else f"{value:,.2g}/s"


def size(value: float | None) -> str:
    """Format a number of bytes in the largest fitting unit."""
    if value is None:
        return NOTHING
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1_000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1_000
    return ""


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Format a count with its noun, in singular or plural."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def early(summary: Mapping[str, Any] | None) -> int:
    """Count the early terminations in a summary. Partial matches that ended with their transactions are left out."""
    return 0 if summary is None else int(summary["total"] - summary["by_form"].get("end", 0))


def as_json(value: Any, *, is_indented: bool = False) -> str:
    """Format a value as JSON. If ``is_indented`` is false, a text is returned unchanged."""
    if isinstance(value, str) and not is_indented:
        return value
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if is_indented else None).decode()


def pattern_text(text: str) -> Markup:
    """Format a pattern's text as HTML, with keywords, constants and comments highlighted."""
    markup, end = Markup(""), 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "word" and token[0] not in _KEYWORDS:
            continue
        markup += escape(text[end : token.start()])
        markup += Markup('<span class="tok-{}">{}</span>').format(kind, token[0])
        end = token.end()
    return markup + escape(text[end:])


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "when": when,
    "ago": ago,
    "span": span,
    "number": number,
    "figure": figure,
    "rate": rate,
    "size": size,
    "plural": plural,
    "early": early,
    "as_json": as_json,
    "pattern_text": pattern_text,
}
