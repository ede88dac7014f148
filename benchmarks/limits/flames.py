"""Profiles of a process, sampled from outside by py-spy: a flame graph, and the functions with the most time.

The time of compiled kernels and C functions counts for the Python function that calls them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_RATE = 500  # samples a second
_FRAME = re.compile(r"^(?P<function>.+) \((?P<file>[^()]+?)(:\d+)?\)$")


class NotSampled(Exception):
    """py-spy cannot sample a process here. The message has the reason."""


def flame_graph(command: Sequence[str], path: Path) -> None:
    """Run a command and write a flame graph of it, as SVG.

    Raises:
        NotSampled: py-spy is not installed, or may not inspect other processes.
    """
    _record(command, path, "flamegraph")


def own_time(command: Sequence[str], scratch: Path, within: str) -> Counter[str]:
    """Run a command. Return the number of samples in each function, without its callees.

    Args:
        command: The command to run.
        scratch: A folder for samples.
        within: A function in the form of ``named``. Only samples inside it count, not imports.

    Raises:
        NotSampled: As ``flame_graph``.
    """
    raw = scratch / "samples.txt"
    _record(command, raw, "raw")
    return counted(raw.read_text(encoding="utf-8").splitlines(), within)


def counted(lines: Sequence[str], within: str) -> Counter[str]:
    """Count samples by innermost function, from stacks (``outer;inner number``) with the function ``within``."""
    spent: Counter[str] = Counter()
    for line in lines:
        stack, _, samples = line.rpartition(" ")
        frames = [named(frame) for frame in stack.split(";")]
        if within in frames:
            spent[frames[-1]] += int(samples)
    return spent


def named(frame: str) -> str:
    """Return a frame as the function and the last two parts of its file."""
    found = _FRAME.match(frame)
    if found is None:
        return frame
    return f"{found['function']} ({'/'.join(Path(found['file']).parts[-2:])})"


def table(spent: Counter[str], most: int) -> str:
    """Return the functions with the most own time, as Markdown."""
    lines = ["| function | share of its own |", "|---|---|"]
    lines += [f"| `{name}` | {count / spent.total():.1%} |" for name, count in spent.most_common(most)]
    return "\n".join(lines) + "\n"


def _record(command: Sequence[str], path: Path, form: str) -> None:
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if spy is None:
        raise NotSampled("py-spy is not installed: scripts/setup installs it")
    options = ["--rate", str(_RATE), "--function", "--format", form, "--output", str(path)]
    done = subprocess.run(
        [spy, "record", *options, "--", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode or not path.exists():
        raise NotSampled(f"py-spy may not look at processes here: {done.stderr.strip()[-300:]}")
