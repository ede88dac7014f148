"""The distribution of tests over the processes of a test run."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

_USES_SPARK = re.compile(r"def \w+\([^)]*\bspark(_options)?\b|(usefixtures|getfixturevalue)\([^)]*\"spark(_options)?\"")


class FilesTogether(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """The scheduler of a test run: the tests of a file share a process, and so do all files with Spark.

    Spark takes about ten seconds of CPU time to start, and the same time again until its code is compiled.
    """

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "spark" if uses_spark(self.config.rootpath / file) else file


@cache
def uses_spark(file: Path) -> bool:
    """Return whether a test in a file has the fixture ``spark``."""
    return _USES_SPARK.search(file.read_text(encoding="utf-8")) is not None
