"""Collects the problems of a tree file."""

from __future__ import annotations

from workflows.errors import ModelRefused
from workflows.formats.entries import MAX_PROBLEMS, Entry, at_line


class Problems:
    """The problems of a file, each with its path and its line; too many end the reading."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def refuse(self, path: str, entry: Entry, message: str) -> None:
        """Add a problem. Reading continues, so that others are found too, until there are too many."""
        self._found.append((place_of(path, entry), message))
        if len(self._found) >= MAX_PROBLEMS:
            self.finish()

    def finish(self) -> None:
        """End the reading; reject the file if there were problems."""
        if self._found:
            raise ModelRefused(self._found)


def place_of(path: str, entry: Entry) -> str:
    """Path and line in words, such as ``tree.sequence[2].xor (line 7)``."""
    line = at_line(entry.line)
    return f"{path} ({line})" if line and path else path or line
