r"""Unidiomatic wordings that the documents and docstrings must not contain, with their plain replacements.

``WORDS`` are refused in documents, and in every docstring and message of the shipped packages. ``WORDS_FOR_USERS`` are
also refused in texts for users: documents, the API, the command line, settings, raised errors. The lists contain only
wordings that are never right. Whether a sentence is easy to read, only people can judge.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from house.documents import code_blocks
from house.sources import ROOT, Source, Violation, project_files


class Word(NamedTuple):
    """A refused wording: the regular expression that finds it, and its replacement."""

    found: re.Pattern[str]
    better: str


def _word(pattern: str, better: str) -> Word:
    return Word(re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), better)


_OTHER_ELSE = r"(?<!nothing)(?<!anything)(?<!something)(?<!everything)(?<!nobody)(?<!somebody)(?<!what)"

WORDS: tuple[Word, ...] = (
    _word(r"\bwhoever\b", "the caller, the client, a process that"),
    _word(r"\bwho asks\b", "the caller, the client"),
    _word(r"\blook(s|ed|ing)? whether\b", "checks that"),
    _word(r"\bmended\b", "fixed"),
    _word(r"\bwhat (becomes|became|will become) of\b", "what happens to, the result of"),
    _word(r"\bwhat (comes|came) of\b", "the result of"),
    _word(r"\bat hand\b", "current, available"),
    _word(r"(?<!because)(?<!instead)(?<!out)\sof (now|then)\b", "current, at that time"),
    _word(r"\bfares?\b", "the state of"),
    _word(r"\bgrave(st)?\b", "severe; of at least this severity"),
    _word(r"\b(ended|ends|end) early\b|\bearly endings?\b", "terminated early, early termination"),
    _word(r"\b(that|which) (is|are) there\b", "existing, present, available"),
    _word(r"\bstays? so\b", "persists, remains"),
    _word(r"\b(rule|word)s? of the house\b", "the project's rules"),
    _word(r": (They|It)\.$|\bSee there\.", "say what it is"),
)
WORDS_FOR_USERS: tuple[Word, ...] = (
    _word(r"\b(is|are|was|were|be|been|being) told\b(?! apart)", "is reported, emitted, shown, printed"),
    _word(r"\bso many\b(?! that\b)", "at most n, up to n, the number of"),
    _word(r"\blook(s|ed|ing)? at\b", "examine, read, check"),
    _word(r"\b(go|goes|went|gone) away\b", "is removed, disconnects"),
    _word(_OTHER_ELSE + r" else\.?\Z", "(default: ...)"),
    _word(r"\banew\b", "again"),
    _word(r"(?<!there)(?<!where)\s(is|are|was|were) no (?!longer\b|more\b|less\b|other\b|one\b)", "is not a, are not"),
    _word(r"\b(go|goes|went|gone) on\b", "continues"),
    _word(r"\bor say\b|, say \w", "or use, or give"),
    _word(r"\bstands? (in|at|twice|before|between|inside)\b", "is, means"),
    _word(r"\b(is|are) wanted\b", "give, must be"),
    _word(r"\bwhich is the most\b", "the maximum"),
    _word(r"\bheld instances?\b", "bound events"),
)

_DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "literature/README.md",
    "api/outcomes.json",
    "console/templates/*.html",
)
_DECISIONS = "docs/adr/*"  # decisions keep the words in which they were written
_FOR_USERS = ("api/*", "service/cli/*", "service/doctor/*", "service/settings.py", "*/errors.py")
_NOT_READ = ("*/kernels/*",)
_CODE = re.compile(r"`[^`]*`")
_SHOWN = re.compile(r'\b(?:title|aria-label|placeholder|alt)="([^"]*)"')
_MARKUP = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}|<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


def plain_words(source: Source) -> Iterator[Violation]:
    """Check that docstrings and messages of the shipped packages contain no refused wording."""
    if source.package is None or _is_one_of(source.path, _NOT_READ):
        return
    is_for_users = _is_one_of(source.path, _FOR_USERS)
    raised = {id(part) for node in source.nodes if isinstance(node, ast.Raise) for part in ast.walk(node)}
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            words = WORDS + WORDS_FOR_USERS if is_for_users or id(node) in raised else WORDS
            yield from _refused(source.path, node.value, node.lineno, words)


def documents() -> list[Path]:
    """Return the texts to check: Markdown files except decisions, the API's outcomes, the console's templates."""
    return [
        path
        for path in [*project_files(".md"), *project_files(".html"), ROOT / "api" / "outcomes.json"]
        if _is_one_of(name := path.relative_to(ROOT).as_posix(), _DOCUMENTS) and not fnmatch(name, _DECISIONS)
    ]


def document_words(path: str, text: str) -> Iterator[Violation]:
    """Check that a document contains no refused wording.

    Code and markup are skipped, except HTML attributes whose text is shown to users.
    """
    lines = text.splitlines()
    for block in code_blocks(text):
        end = block.line + block.text.count("\n") + 1
        lines[block.line - 1 : end] = [""] * (end - block.line + 1)
    prose = _CODE.sub(lambda code: "`" + "\n" * code[0].count("\n") + "`", "\n".join(lines))
    if path.endswith(".html"):
        prose = _MARKUP.sub(lambda tag: "|".join(["", *_SHOWN.findall(tag[0]), "\n" * tag[0].count("\n")]), prose)
    yield from _refused(path, prose, 1, WORDS + WORDS_FOR_USERS)


def _refused(path: str, text: str, line: int, words: tuple[Word, ...]) -> Iterator[Violation]:
    for word in words:
        for occurrence in word.found.finditer(text):
            begin = occurrence.start() + len(occurrence[0]) - len(occurrence[0].lstrip())
            phrase = " ".join(occurrence[0].split())
            yield Violation(path, line + text.count("\n", 0, begin), f"{phrase!r}: write {word.better}")


def _is_one_of(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)
