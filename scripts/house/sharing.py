"""How tests are divided among the processes of a pass."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

_USES_SPARK = re.compile(r"def \w+\([^)]*\bspark(_options)?\b|(usefixtures|getfixturevalue)\([^)]*\"spark(_options)?\"")


class FilesTogether(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """The scheduler of a pass: the tests of a file stay together, and so do those of all files that share a Spark.

    A Spark takes some ten seconds of a core to start, and as many until its code is compiled.
    """

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "spark" if uses_spark(self.config.rootpath / file) else file


@cache
def uses_spark(file: Path) -> bool:
    """Whether a test of a file has the fixture ``spark``."""
    return _USES_SPARK.search(file.read_text(encoding="utf-8")) is not None
