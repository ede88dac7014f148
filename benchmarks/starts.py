"""CPU seconds of whole commands on minimal inputs, with cached kernels and bytecode.

``--with PATH`` compares the commands with those of another installation, in turn.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_FILES = {
    "p.pattern": "PATTERN paid EVENT SEQ(created a, paid b) WITHIN 1 HOUR\n",
    "e.csv": "subject,type,time\no,created,2026-01-01T00:00:00Z\no,paid,2026-01-01T00:01:00Z\n",
    "q.sql": "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY time PATTERN (A) DEFINE A AS type = 'paid')\n",
    "ends.json": '{"constraints": [], "end": ["paid"]}\n',
}
_MATCH = ("match", "--pattern", "p.pattern", "--events", "e.csv", "--key", "subject")
_COMMANDS = (
    ("--version",),
    ("--help",),
    ("streams", "list", "--url", "http://127.0.0.1:9"),  # no service answers, so this measures the start of a call
    ("check", "p.pattern"),
    ("match", "--sql", "q.sql", "--events", "e.csv"),
    _MATCH,
    (*_MATCH, "--constraints", "ends.json"),
)


def cpu_s(program: Path, arguments: tuple[str, ...], folder: Path) -> float:
    """Return the user and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, *arguments], cwd=folder, check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print the minimum and the median of several runs of each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--with", dest="other", type=Path, help="the program 'forestall' of another installation")
    options = parser.parse_args()
    programs = [Path(sys.executable).with_name("forestall"), *([options.other] if options.other else [])]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        for name, text in _FILES.items():
            (folder / name).write_text(text)
        print(f"load {os.getloadavg()[0]:.1f}")
        for arguments in _COMMANDS:
            taken: dict[Path, list[float]] = {program: [] for program in programs}
            for run in range(options.runs + 1):
                for program in programs:
                    seconds = cpu_s(program, arguments, folder)
                    if run:  # the first run writes bytecode and compiles kernels
                        taken[program].append(seconds)
            shown = "; ".join(
                f"least {min(some):.2f}, median {statistics.median(some):.2f} s" for some in taken.values()
            )
            print(f"{' '.join(arguments)}: {shown}", flush=True)


if __name__ == "__main__":
    main()
