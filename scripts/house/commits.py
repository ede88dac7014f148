"""The required form of commit messages: ``area: Verb ...``, a body with the reason, and no merges."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from house.sources import ROOT

SINCE = "2026-11-26T17:00:00Z"
"""Earlier commits were written before the rule."""

_SUBJECT = re.compile(
    r"[a-z][a-z0-9_/-]*(, [a-z][a-z0-9_/-]*)*: (Add|Fix|Remove|Rename|Move|Speed up|Document|Test) \S.*[^.\s]"
)
_LONGEST = 100


class Commit(NamedTuple):
    """A commit: its abbreviated id, the number of its parents, and its message."""

    id: str
    parents: int
    message: str


def commits(since: str = SINCE) -> list[Commit]:
    """Return the commits of the current branch since a time. Outside a git checkout, return none."""
    command = ["git", "-C", str(ROOT), "log", f"--since={since}", "--format=%h%x00%p%x00%B%x01"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    records = [record.strip("\n").split("\0") for record in done.stdout.split("\1")[:-1]]
    return [Commit(commit_id, len(parents.split()), message) for commit_id, parents, message in records]


def refused_messages(listed: Iterable[Commit]) -> Iterator[str]:
    """Yield the faults of each commit whose message does not have the required form."""
    for commit in listed:
        subject, _, body = commit.message.strip().partition("\n")
        if commit.parents > 1:
            yield f"{commit.id}: a merge commit; rebase instead"
        elif not _SUBJECT.fullmatch(subject) or len(subject) > _LONGEST:
            yield (
                f"{commit.id}: {subject!r}: 'area: Add|Fix|Remove|Rename|Move|Speed up|Document|Test what changed' "
                f"is the form, without a full stop, at most {_LONGEST} characters"
            )
        elif not body.strip():
            yield f"{commit.id}: {subject!r}: the body says why, in two or three lines"
