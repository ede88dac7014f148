"""Problems and notices of a model file; a file with problems is rejected."""

from __future__ import annotations

from workflows.errors import ModelRefused
from workflows.model import ModelNotice

MOST_LISTED = 200
_LONGEST = 1_000


class Findings:
    """Collects problems and notices of one file, each once, in the order of their discovery."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str], None] = {}
        self._notices: dict[ModelNotice, None] = {}

    @property
    def notices(self) -> tuple[ModelNotice, ...]:
        """All notices; if there are many, the first ones."""
        listed = list(self._notices)[:MOST_LISTED]
        if len(self._notices) > len(listed):
            listed.append(ModelNotice(element="", message=f"and {len(self._notices) - len(listed):,} notices more"))
        return tuple(listed)

    def refuse(self, element: str, message: str) -> None:
        """Add a problem: the model's meaning would change. Reading continues, so that other problems are found too."""
        self._problems[_cut(element), _cut(message)] = None

    def note(self, element: str, message: str) -> None:
        """Add a notice: something was left out, or read in an unexpected way."""
        self._notices[ModelNotice(element=_cut(element), message=_cut(message))] = None

    def finish(self) -> None:
        """End the reading; reject the file if there were problems."""
        if self._problems:
            raise self._refusal()

    def refusal(self, element: str, message: str) -> ModelRefused:
        """An error with all problems so far and one more, which ends the reading."""
        self.refuse(element, message)
        return self._refusal()

    def _refusal(self) -> ModelRefused:
        listed = list(self._problems)[:MOST_LISTED]
        if len(self._problems) > len(listed):
            listed.append(("", f"and {len(self._problems) - len(listed):,} problems more"))
        return ModelRefused(listed)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
