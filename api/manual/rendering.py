"""Rendering of Markdown documents as pages of the manual: anchors, links between pages, and sections for the search."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_SOURCE: Final = Path(__file__).resolve().parents[2] / "docs"
_SHIPPED: Final = Path(__file__).resolve().parent / "pages"
FOLDER: Final = _SHIPPED if _SHIPPED.is_dir() else _SOURCE
"""Folder of the documents: next to this module in an installed service, otherwise the repository's."""

INDEX: Final = "README"
PICTURES: Final = {".svg": "image/svg+xml", ".png": "image/png"}
_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_HEADING = re.compile(r"(#{1,6}) +(.+?)\s*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"`|\*\*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The part of a page below one heading. ``lines`` contain no markup."""

    heading: str
    anchor: str
    level: int
    lines: list[str]

    @property
    def text(self) -> str:
        return " ".join(self.lines)


@cache
def addresses() -> Mapping[str, Path]:
    """Return the manual's documents as files by page address. The index has the empty address."""
    paths = sorted(path.relative_to(FOLDER) for path in FOLDER.rglob("*.md"))
    return {
        "" if path.stem == INDEX and len(path.parts) == 1 else path.with_suffix("").as_posix(): path for path in paths
    }


def pictures() -> Mapping[str, Path]:
    """Return the pictures in the documents by address."""
    paths = (path for path in sorted(FOLDER.rglob("*")) if path.suffix in PICTURES)
    return {path.relative_to(FOLDER).as_posix(): path for path in paths}


def rendered(path: Path, sections: Sequence[Section]) -> str:
    """Render a document as HTML, given its sections."""
    tokens = _MARKDOWN.parse((FOLDER / path).read_text(encoding="utf-8"))
    documents = frozenset(document.as_posix() for document in addresses().values())
    _mark_rows(tokens)
    headings = (token for token in tokens if token.type == "heading_open")
    for token, section in zip(headings, sections, strict=True):
        token.attrSet("id", section.anchor)
    for token in tokens:
        for part in token.children or ():
            if part.type == "link_open":
                _relink(part, path.parent, documents)
        if token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            token.content = ""
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def sections_of(path: Path) -> list[Section]:
    """Split a document into sections, line by line, because a full parse would make each search take seconds."""
    sections: list[Section] = []
    anchors: Counter[str] = Counter()
    is_code = False
    for line in (FOLDER / path).read_text(encoding="utf-8").splitlines():
        is_code ^= line.startswith("```")
        match = None if is_code else _HEADING.match(line)
        if match is not None:
            heading = _plain(match[2])
            plain = _NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-")
            anchor = f"{plain}-{anchors[plain]}" if anchors[plain] else plain  # same anchors as on GitHub
            anchors[plain] += 1
            sections.append(Section(heading=heading, anchor=anchor, level=len(match[1]), lines=[]))
        elif sections and not line.startswith("<!--"):
            sections[-1].lines.append(line if is_code else _plain(line))
    return sections


def _plain(line: str) -> str:
    return _MARKS.sub("", _LINK.sub(r"\1", line)).strip()


def _mark_rows(tokens: Sequence[Token]) -> None:
    """Add an anchor to each table row whose first cell is a code, such as the code of a problem."""
    for row, cell, content in zip(tokens, tokens[1:], tokens[2:], strict=False):
        parts = content.children or []
        if (row.type, cell.type) == ("tr_open", "td_open") and [part.type for part in parts] == ["code_inline"]:
            row.attrSet("id", parts[0].content)


def _relink(link: Token, folder: Path, documents: frozenset[str]) -> None:
    """Turn a link to a document into a link to its page. Links to other files are removed."""
    target, sign, anchor = str(link.attrGet("href") or "").partition("#")
    if not target or "://" in target or target.startswith("mailto:"):
        return
    place = posixpath.normpath(posixpath.join(folder.as_posix(), target))
    if place in documents:
        page = "." if place == f"{INDEX}.md" and folder == Path() else target.removesuffix(".md")
        link.attrSet(
            "href", page.removesuffix(INDEX) + sign + anchor if place == f"{INDEX}.md" else page + sign + anchor
        )
    elif not place.endswith(tuple(PICTURES)):
        link.attrs = {"title": f"{target}, in the repository"}
