"""Rounds of a benchmark in two processes, one of this checkout and one of another.

Both read the same log from files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from benchmarks.filled_log import filled_log, order_batches
from pipeline import EventLogOptions
from pipeline.sources.log_reading import connect

SHARDS = 8

Round = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A benchmark that compares two checkouts.

    Attributes:
        module: The name of the benchmark, such as ``benchmarks.step_cost``.
        sizes: The events of a whole log, by the events of a request. Each log is written to a file ``REQUEST.json``.
        lines: A function that yields the lines of this file, given the client of the log.
        answer: A function that runs a round, given the folder of the files and the words of the question.
        report: A function that requests the given number of rounds and prints the comparison.
    """

    module: str
    sizes: Mapping[int, int]
    lines: Callable[[Any], Iterable[Any]]
    answer: Callable[[Path], Callable[..., Round]]
    report: Callable[[Processes, int], None]

    def run(self, description: str | None, rounds: int) -> None:
        """Measure and print. In the process of a checkout, answer requests for rounds instead."""
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--rounds", type=int, default=rounds)
        parser.add_argument("--before", default="", help="Python of another checkout")
        parser.add_argument("--answer", default="", help=argparse.SUPPRESS)
        wanted = parser.parse_args()
        if wanted.answer:
            run_round = self.answer(Path(wanted.answer))
            for line in sys.stdin:
                sys.stdout.write(orjson.dumps(run_round(*map(int, line.split()))).decode() + "\n")
                sys.stdout.flush()
            return
        with TemporaryDirectory() as name:
            for request, events in self.sizes.items():
                self._write(Path(name), request, events)
            with Processes(self.module, Path(name), wanted.before) as processes:
                self.report(processes, wanted.rounds)

    def _write(self, folder: Path, request: int, events: int) -> None:
        place = folder / f"log-{request}"
        place.mkdir()
        with filled_log(place, order_batches(events, request=request), shards=SHARDS) as log:
            server = connect(EventLogOptions(redis_url=log.url, shards=SHARDS))
            lines = list(self.lines(server))
            server.close()
        (folder / f"{request}.json").write_bytes(b"\n".join(map(orjson.dumps, lines)))


class Processes:
    """One process for each checkout. It imports the packages of its checkout."""

    def __init__(self, module: str, folder: Path, before: str) -> None:
        pythons = {"before": before, "after": sys.executable} if before else {"after": sys.executable}
        self._processes = {name: _process(python, module, folder) for name, python in pythons.items()}

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.communicate()

    def rounds(self, number: int, *words: int) -> dict[str, Sequence[Round]]:
        """Run rounds of all checkouts in turn, and return them by the checkout's name."""
        found: dict[str, list[Round]] = {name: [] for name in self._processes}
        for _ in range(number):
            for name, process in self._processes.items():
                found[name].append(_asked(process, words))
        return {**found}


def _process(python: str, module: str, folder: Path) -> subprocess.Popen[str]:
    root = Path(python).absolute().parents[2]
    return subprocess.Popen(
        [python, "-m", module, f"--answer={folder}"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(process: subprocess.Popen[str], words: Sequence[int]) -> Round:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    process.stdin.write(" ".join(map(str, words)) + "\n")
    process.stdin.flush()
    found: Round = orjson.loads(process.stdout.readline())
    return found
