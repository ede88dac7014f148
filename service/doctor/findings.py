"""Findings, which are the results of checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "problem"]

_ORDER: tuple[Verdict, ...] = ("ok", "warning", "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check.

    Attributes:
        verdict: ``problem`` if the service does not work or loses data, ``warning`` if this can happen under some
            conditions, otherwise ``ok``.
        found: The observation, in words.
        advice: How to fix the problem, or empty if the verdict is ``ok``.
    """

    subject: str
    verdict: Verdict
    found: str
    advice: str = ""


def ok(subject: str, observation: str) -> Finding:
    """Return the finding that a subject has no fault."""
    return Finding(subject=subject, verdict="ok", found=observation)


def warning(subject: str, observation: str, advice: str) -> Finding:
    """Return the finding that a subject can cause problems under some conditions."""
    return Finding(subject=subject, verdict="warning", found=observation, advice=advice)


def problem(subject: str, observation: str, advice: str) -> Finding:
    """Return the finding that a subject does not work, or loses data."""
    return Finding(subject=subject, verdict="problem", found=observation, advice=advice)


def worst(findings: Iterable[Finding]) -> Verdict:
    """Return the most severe verdict of findings, or ``ok`` if there are no findings."""
    return max((finding.verdict for finding in findings), key=_ORDER.index, default="ok")
