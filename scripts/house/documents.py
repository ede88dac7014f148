"""Code blocks of Markdown documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>[^\s`]*)[^`]*$")
_NOT_RUN = re.compile(r"<!-- not run: (\S+ \S+ .+?) -->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced code block.

    Attributes:
        line: The line of the opening fence, from 1.
        language: The first word after the opening fence.
        text: The lines between the fences, without their indentation.
        reason: The reason in the comment ``<!-- not run: ... -->`` on the line before, or empty if there is no comment.
    """

    line: int
    language: str
    text: str
    reason: str


def code_blocks(text: str) -> Iterator[Block]:
    """Yield the code blocks of a Markdown text, in order. An unclosed block ends at the end of the text."""
    lines = text.splitlines()
    position = 0
    while position < len(lines):
        opening = _FENCE.match(lines[position])
        if not opening:
            position += 1
            continue
        start = position
        position += 1
        while position < len(lines) and lines[position].strip() != opening["fence"]:
            position += 1
        above = next((line for line in reversed(lines[:start]) if line.strip()), "")
        skipped = _NOT_RUN.fullmatch(above.strip())
        yield Block(
            line=start + 1,
            language=opening["language"],
            text="\n".join(line.removeprefix(opening["indent"]) for line in lines[start + 1 : position]) + "\n",
            reason=skipped[1] if skipped else "",
        )
        position += 1
