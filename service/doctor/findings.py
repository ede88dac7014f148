"""The results of checks, each with its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "problem"]

_ORDER: tuple[Verdict, ...] = ("ok", "warning", "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check; ``advice`` is empty if nothing is wrong.

    A ``problem`` breaks the service or loses data; a ``warning`` may do so under some conditions.
    """

    subject: str
    verdict: Verdict
    found: str
    advice: str = ""


def ok(subject: str, observation: str) -> Finding:
    """The finding that a subject has no fault."""
    return Finding(subject=subject, verdict="ok", found=observation)


def warning(subject: str, observation: str, advice: str) -> Finding:
    """The finding that a subject can cause problems under some conditions."""
    return Finding(subject=subject, verdict="warning", found=observation, advice=advice)


def problem(subject: str, observation: str, advice: str) -> Finding:
    """The finding that a subject does not work, or loses data."""
    return Finding(subject=subject, verdict="problem", found=observation, advice=advice)


def worst(findings: Iterable[Finding]) -> Verdict:
    """The most severe verdict of findings; ``ok`` if there are no findings."""
    return max((finding.verdict for finding in findings), key=_ORDER.index, default="ok")
