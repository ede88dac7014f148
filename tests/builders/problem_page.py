"""The page of all codes of problem documents, ``docs/problems.md``: ``python -m tests.builders.problem_page``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from http import HTTPStatus

import api.app  # noqa: F401 # all classes of errors
from api.errors import STATUS
from streams import ForestallError

_HEAD = """\
# Problems of the API

The `code` of a problem document is stable. This page has all of them; it is made from the classes of
errors, and a test compares the two. `again` marks those whose request may succeed later unchanged. Details, such as
`errors` or `retry_after_s`, are members of the document beside the code; [HTTP](http.md#errors) has their form.

| code | status | again | meaning |
|---|---|---|---|
"""
_OF_HTTP = {
    "internal": (HTTPStatus.INTERNAL_SERVER_ERROR, "The service failed; its log says why."),
    "method-not-allowed": (
        HTTPStatus.METHOD_NOT_ALLOWED,
        "The path does not have the method; `allowed` lists its methods.",
    ),
}


def problem_page() -> str:
    """The text of ``docs/problems.md``."""
    rows = {code: (status, False, meaning) for code, (status, meaning) in _OF_HTTP.items()}
    for error in _classes(ForestallError):
        status = next((STATUS[kind] for kind in error.__mro__ if kind in STATUS), None)
        if status is not None:
            rows.setdefault(error.code, (status, error.is_retryable, _meaning(error)))
    lines = [
        f"| `{code}` | {status.value} | {'yes' if is_retryable else ''} | {meaning} |"
        for code, (status, is_retryable, meaning) in sorted(rows.items())
    ]
    return _HEAD + "\n".join(lines) + "\n"


def _classes(parent: type[ForestallError]) -> Iterator[type[ForestallError]]:
    """The subclasses of a class, the nearest first."""
    for child in parent.__subclasses__():
        yield child
        yield from _classes(child)


def _meaning(error: type[ForestallError]) -> str:
    text = (inspect.getdoc(error) or "").split("\n\n")[0]
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(problem_page())
