"""Cursors of paged lists: a cursor sent by a client is checked before it reaches Redis."""

from __future__ import annotations

import re

from service.errors import InvalidCursor

NUMBER = re.compile("[0-9]{1,18}")
PLACE = re.compile("(?!0+-0+$)[0-9]{1,19}-[0-9]{1,19}")  # of a Redis stream, which has no place 0-0
ROW_PLACE = re.compile(rf"{PLACE.pattern}(\.[0-9]{{1,9}})?")  # the same, or a row of a block there


def require_cursor(after: str, form: re.Pattern[str]) -> None:
    """Check that a text is a cursor of a form; raises ``InvalidCursor``."""
    if not form.fullmatch(after):
        shown = after if len(after) <= 100 else after[:100] + "…"
        raise InvalidCursor(f"after={shown!r} is not a cursor; leave it out, or send the cursor of the last page")
