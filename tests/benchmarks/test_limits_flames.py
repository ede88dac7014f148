"""What is read from the samples of a profiler."""

from __future__ import annotations

from benchmarks.limits.flames import counted, named, table

STACKS = [
    "<module> (forestall);match (service/cli/match.py);read (streams/readers/files.py) 30",
    "<module> (forestall);match (service/cli/match.py);read (streams/readers/files.py);wrapper (pyarrow/compute.py) 9",
    "<module> (forestall);match (service/cli/match.py) 1",
    "<module> (forestall);_find_and_load (<frozen importlib._bootstrap>) 60",
    " 143",
]


def test_only_samples_within_the_function_count() -> None:
    spent = counted(STACKS, "match (cli/match.py)")
    assert spent == {"read (readers/files.py)": 30, "wrapper (pyarrow/compute.py)": 9, "match (cli/match.py)": 1}


def test_a_frame_is_named_without_its_line() -> None:
    assert named("take (site-packages/pyarrow/compute.py:468)") == "take (pyarrow/compute.py)"
    assert named("main (<frozen runpy>)") == "main (<frozen runpy>)"
    assert named("no frame") == "no frame"


def test_shares_are_of_all_that_counted() -> None:
    lines = table(counted(STACKS, "match (cli/match.py)"), 2).splitlines()
    assert lines[2:] == ["| `read (readers/files.py)` | 75.0% |", "| `wrapper (pyarrow/compute.py)` | 22.5% |"]
