"""Calls in ``having`` become names; texts in quotes, quoted names and comments stay as they are."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aggregates import AggregateBody, read_aggregate

VALUES = {"n": "count()", "s": "sum(v)"}


def body_of(having: str, **changes: Any) -> AggregateBody:
    document = {"of": "x", "by": ["note"], "values": VALUES, "window": "1 h", "having": having}
    return read_aggregate(document | changes)


def text_of(having: str, **changes: Any) -> str:
    body = body_of(having, **changes)
    assert body.having is not None
    return body.having.text


@pytest.mark.parametrize(
    "text",
    [
        "note = 'see all(n)'",
        "note = 'all(x)' AND n > 1",
        "note = 'it''s all(n)' AND n > 1",
        "note = 'before(n, 7 d)' AND n > 1",
        "note = 'before(x, ever)'",
        "n > 1 AND `all(n)` > 1",
        "n > 1 -- don't compare with all(n)\n AND s > 1",
        "note = 'an open quote, all(n)",
        "n > 1 AND `before(n, 1 h)",
        "note = 'row.s' AND row.s > 1",
    ],
)
def test_what_is_quoted_or_a_comment_is_no_call(text: str) -> None:
    body = body_of(text)
    assert body.having is not None
    assert (body.having.text, body.having.names, body.is_global) == (text, (), False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("note = 'all(n)' AND n > all( n )", "note = 'all(n)' AND n > `all(n)`"),
        ("n > all(n) -- it's all\n AND s < all(s)", "n > `all(n)` -- it's all\n AND s < `all(s)`"),
        (
            "before (n , 2 s) > 1 AND note IN ('before(n, 2 s)', 'a''', 'b') AND before(s,1 s) > 2",
            "`before(n, 2000000 us)` > 1 AND note IN ('before(n, 2 s)', 'a''', 'b') AND `before(s, 1000000 us)` > 2",
        ),
    ],
)
def test_a_call_beside_a_quote_is_read(text: str, expected: str) -> None:
    assert text_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n >= row.most AND note = 'row.most'", "n >= lookup(`t`, row).most AND note = 'row.most'"),
        ("n >= row.`most n` AND `row.n` > 1", "n >= lookup(`t`, row).`most n` AND `row.n` > 1"),
        ("row.all > n AND row.before > 1", "lookup(`t`, row).all > n AND lookup(`t`, row).before > 1"),
        ("n > 1 AND a.row.b > 1", "n > 1 AND a.row.b > 1"),
    ],
)
def test_a_column_of_the_row_is_a_lookup(text: str, expected: str) -> None:
    assert text_of(text, for_each_row_of="t") == expected


def test_the_name_of_a_table_is_taken_literally() -> None:
    assert text_of("row.most > n", for_each_row_of="a\\1b") == "lookup(`a\\1b`, row).most > n"


def test_a_call_with_many_blanks_is_read_in_linear_time() -> None:
    """With cubic time, the process would reach its limit of processor time; it needs about a second."""
    code = (
        "from tests.aggregates.test_having import text_of; t = 'n > before(n, ' + ' ' * 9_000; assert text_of(t) == t"
    )
    command = f"ulimit -t 30; exec {shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    ended = subprocess.run(["/bin/sh", "-c", command], check=False, cwd=Path(__file__).resolve().parents[2])
    assert ended.returncode == 0
