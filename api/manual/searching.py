"""Search of the manual: finds the sections that contain all words of a query, and ranks them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.manual.rendering import Section

MOST_CHARACTERS: Final = 200
_MOST_WORDS: Final = 8
_MOST_FOUND: Final = 30
_MOST_COUNTED: Final = 5
_AROUND: Final = 90
_MARKS: Final = re.compile(r"`{3}\w*|\|[-|: ]*")  # markup of code blocks and tables
_RECORD: Final = 100  # penalty of decision records, so that pages about usage rank first


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A section found by a search, with an excerpt."""

    address: str
    title: str
    heading: str
    piece: str


def search(pages: Mapping[str, Sequence[Section]], question: str) -> tuple[list[Hit], str]:
    """Find the sections that contain all words of a query. Words in titles and headings rank higher.

    The second result says which sections and words are left out because there are too many. It is empty otherwise.
    """
    all_words = question[:MOST_CHARACTERS].lower().split()
    words = all_words[:_MOST_WORDS]
    scored_hits = sorted(_scored(pages, words), key=lambda scored_hit: scored_hit[0]) if words else []
    left_out = [
        f"The first {most} of {count} {noun}."
        for most, count, noun in (
            (_MOST_FOUND, len(scored_hits), "sections are listed"),
            (_MOST_WORDS, len(all_words), "words were searched for"),
        )
        if count > most
    ]
    return [hit for _, hit in scored_hits[:_MOST_FOUND]], " ".join(left_out)


def _scored(pages: Mapping[str, Sequence[Section]], words: Sequence[str]) -> Iterator[tuple[int, Hit]]:
    """Yield the sections that contain all words, each with a sort key (lowest first)."""
    for address, sections in pages.items():
        title = sections[0].heading.lower()
        for section in sections:
            heading, text = section.heading.lower(), section.text.lower()
            if not all(word in heading or word in text or word in title for word in words):
                continue
            rank = sum(
                20 * (word in title) + 10 * (word in heading) + min(_MOST_COUNTED, text.count(word)) for word in words
            )
            rank -= _RECORD * address.startswith("adr/")
            place = address if section.level == 1 else f"{address}#{section.anchor}"
            piece = _piece(section.text, text, words)
            yield -rank, Hit(address=place, title=sections[0].heading, heading=section.heading, piece=piece)


def _piece(text: str, lower: str, words: Sequence[str]) -> str:
    places = [place for word in words if (place := lower.find(word)) >= 0]
    begin = max(0, min(places, default=0) - _AROUND)
    end = begin + 2 * _AROUND
    excerpt = " ".join(_MARKS.sub(" ", text[begin:end]).split())
    return f"{'… ' if begin else ''}{excerpt}{' …' if end < len(text) else ''}"
