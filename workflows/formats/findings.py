"""Problems and notices of a model file. A file with problems is rejected."""

from __future__ import annotations

from workflows.errors import ModelRefused
from workflows.model import ModelNotice

FORMS = "BPMN 2.0 (XML), PNML (XML), and process trees (YAML or JSON) are read"
MOST_LISTED = 200
_LONGEST = 1_000


class Findings:
    """The problems and notices of one model file, in the order of discovery, without duplicates."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str], None] = {}
        self._notices: dict[ModelNotice, None] = {}

    @property
    def notices(self) -> tuple[ModelNotice, ...]:
        """Up to ``MOST_LISTED`` notices. If there are more, an additional last entry gives the number of the others."""
        listed = list(self._notices)[:MOST_LISTED]
        if len(self._notices) > len(listed):
            listed.append(ModelNotice(element="", message=f"and {len(self._notices) - len(listed):,} notices more"))
        return tuple(listed)

    def refuse(self, element: str, message: str) -> None:
        """Add a problem: the element cannot be read without changing the meaning of the model.

        Reading continues, so that one run reports all problems of the file.
        """
        self._problems[_cut(element), _cut(message)] = None

    def note(self, element: str, message: str) -> None:
        """Add a notice: the element was left out, or was read in an unexpected way."""
        self._notices[ModelNotice(element=_cut(element), message=_cut(message))] = None

    def finish(self) -> None:
        """Raise ``ModelRefused`` with all problems if the file has any."""
        if self._problems:
            raise self._refusal()

    def refusal(self, element: str, message: str) -> ModelRefused:
        """Add a problem after which reading cannot continue.

        Return the error with all problems, for the caller to raise.
        """
        self.refuse(element, message)
        return self._refusal()

    def _refusal(self) -> ModelRefused:
        listed = list(self._problems)[:MOST_LISTED]
        if len(self._problems) > len(listed):
            listed.append(("", f"and {len(self._problems) - len(listed):,} problems more"))
        return ModelRefused(listed)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
