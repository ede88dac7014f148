"""Code blocks of the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>[^\s`]*)[^`]*$")
_NOT_RUN = re.compile(r"<!-- not run: (\S+ \S+ .+?) -->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block.

    Attributes:
        line: Of its opening fence, from 1.
        language: First word after the fence.
        text: The lines between the fences, without their indentation.
        reason: Why it is not run: the comment ``<!-- not run: ... -->`` on the line before; else empty.
    """

    line: int
    language: str
    text: str
    reason: str


def code_blocks(text: str) -> Iterator[Block]:
    """Blocks of a Markdown text, in order; an unclosed block ends with the text."""
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
