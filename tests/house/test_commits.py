"""Commit messages have one form, and each way to leave it is found."""

import pytest

from house.commits import Commit, commits, refused_messages

WHY = "\n\nMost runs end before.\n"


def test_commits_of_this_branch_have_the_form():
    assert list(refused_messages(commits())) == []


@pytest.mark.parametrize(
    ("message", "parents", "reason"),
    [
        ("nfa, shards: Fix the time of idle keys" + WHY, 1, None),
        ("service/cli: Speed up help" + WHY, 1, None),
        ("nfa: Fix the time of idle keys" + WHY, 2, "merge"),
        ("nfa: Fix the time of idle keys", 1, "says why"),
        ("nfa: Mend the time of idle keys" + WHY, 1, "Add|Fix"),
        ("Fix the time of idle keys" + WHY, 1, "Add|Fix"),
        ("nfa: Fix the time of idle keys." + WHY, 1, "full stop"),
        (f"nfa: Fix {'x' * 100}" + WHY, 1, "100 characters"),
    ],
)
def test_other_forms_are_refused(message, parents, reason):
    refused = list(refused_messages([Commit("abc", parents, message)]))
    assert [reason in text for text in refused] == [True] * (reason is not None)
