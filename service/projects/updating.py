"""Writes new expectations into the tests of a project. All other lines of the files remain unchanged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from service.errors import FileUnreadable, ProjectRefused
from service.projects.documents import Document, read_file
from service.projects.planning import as_yaml

Expectation: TypeAlias = Mapping[str, Sequence[str]]
"""The expected lines of each list that a test names."""

_ENDS = ("---", "...")


def update_tests(expectations: Sequence[tuple[Document, Expectation]]) -> Iterator[Path]:
    """Write new expectations into the files of tests, and yield each file once it is written.

    Each file is replaced once, as a whole. Raises ``ProjectRefused`` after all files are written, with each document
    that cannot be updated.
    """
    problems: list[str] = []
    texts: dict[Path, str] = {}
    for file in dict.fromkeys(document.file for document, _ in expectations):
        texts[file] = _updated(file, [pair for pair in expectations if pair[0].file == file], problems)
    for file, text in texts.items():
        if text:
            _replace(file, text)
            yield file
    if problems:
        raise ProjectRefused.of(sorted(problems))


def _updated(file: Path, expectations: Sequence[tuple[Document, Expectation]], problems: list[str]) -> str:
    """Return the text of a file with new expectations, or "" if no document can be updated.

    If a document cannot be updated, the reason is added to ``problems``. The last document is updated first, so that
    the line numbers of the others remain valid.
    """
    current = read_file(file)
    unchanged = [] if isinstance(current, ProjectRefused) else current
    lines: list[str] | None = None
    for document, expected in sorted(expectations, key=lambda pair: pair[0].line, reverse=True):
        try:
            if document not in unchanged:
                raise document.refuse("the document has changed since the tests were read; test again")
            before = file.read_text(encoding="utf-8").splitlines(keepends=True) if lines is None else lines
            lines = _with_expectation(before, document, expected)
        except ProjectRefused as error:
            problems += error.problems
    return "".join(lines or ())


def _with_expectation(lines: Sequence[str], document: Document, expected: Expectation) -> list[str]:
    """Replace the expectation of a document in the lines of a file.

    Each member must begin on its own line and without indentation. Otherwise the document is refused, because its lines
    cannot be found.
    """
    starts = sorted(document.lines.values())
    begins = "".join(lines[line - 1][:1] for line in (document.line, *starts))
    if len(set(starts)) < len(starts) or any(mark in "{ \t" for mark in begins):
        raise document.refuse("only a document with each member on lines of its own is updated; write it so", "expect")
    first = document.lines["expect"] - 1
    ends = (at for at in range(first + 1, len(lines)) if at + 1 in starts or lines[at].startswith(_ENDS))
    end = next(ends, len(lines))
    while lines[end - 1].startswith("#") or not lines[end - 1].strip():
        end -= 1
    return [*lines[:first], as_yaml({"expect": dict(expected)}), *lines[end:]]


def _replace(file: Path, text: str) -> None:
    path = file.resolve()
    draft = path.with_name(f"{path.name}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        shutil.copymode(path, draft)
        draft.replace(path)
    except OSError as error:
        raise FileUnreadable(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
