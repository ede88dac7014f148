"""Problems and notices of a PNML file; problems reject it."""

from __future__ import annotations

from dataclasses import dataclass, field

from workflows.errors import ModelRefused

MAX_TOKENS_IN_ALL = 200_000
MAX_PROBLEMS = 100

_LONGEST_ID = 200


@dataclass(slots=True)
class Findings:
    """Problems of a net, and notices of parts that were left out."""

    problems: list[tuple[str, str]] = field(default_factory=list)
    notices: dict[str, str] = field(default_factory=dict)
    tokens: int = 0

    def refuse(self, element: str, message: str) -> None:
        """Add a problem: the net's meaning would change. Reading continues for others, until there are too many."""
        self.problems.append((element[:_LONGEST_ID], message))
        if len(self.problems) >= MAX_PROBLEMS:
            self.finish()

    def finish(self) -> None:
        """End the reading; reject the file if there were problems."""
        if self.problems:
            raise ModelRefused(self.problems)

    def count_tokens(self, count: int) -> None:
        """Add to the tokens of all markings and arcs, or reject the file if they are too many."""
        self.tokens += count
        if self.tokens > MAX_TOKENS_IN_ALL:
            self.refuse("", f"all markings and weights sum to more than {MAX_TOKENS_IN_ALL:,}")
            self.finish()

    def note(self, element: str, message: str) -> None:
        """Add a notice: something was left out; equal messages are noted once."""
        self.notices.setdefault(message, element)
