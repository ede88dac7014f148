"""Commands that run engines on cases."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.cases import Case
from benchmarks.peers.environments import HERE, OPEN_PACKAGES, PEERS, ROOT, Environment, compiled, java_tool, set_up
from benchmarks.peers.systems import UNFILTERED, Mode, System
from streams import kernel_digest

HEAP = "4g"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One run of an engine, ready to start.

    Attributes:
        command: The words of the command.
        environment: Environment variables in addition to those of this process.
        output: The file for its output, if the output is read afterwards.
        answer: The file or folder from which the answer of a command is read afterwards. None means that a driver
            prints the answer.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    output: Path | None = None
    answer: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a run: its events, events for a warm-up (or None), and a separate folder."""

    events: Path
    warm: Path | None
    folder: Path

    @property
    def words(self) -> list[str]:
        """The event files as options of a driver."""
        return ["--events", str(self.events), "--warm", str(self.warm) if self.warm else ""]


class Bench:
    """The engines that are set up.

    Args:
        cases: All cases that may be run. Their queries are compiled into the drivers.
        folder: The folder of the peers.
        tag: The tag of the compiled classes. Two benches with different tags do not remove each other's classes.
    """

    def __init__(self, cases: Sequence[Case], folder: Path, tag: str = "bench") -> None:
        self._cases, self._folder, self._tag = cases, folder, tag
        self._environments: dict[str, Environment] = {}
        self._classes: dict[str, Path] = {}
        self._launchers: Mapping[str, Callable[[Case, Mode, Files], Launch]] = {
            "library": _library,
            "forestall match": _match,
            "forestall backtest": _backtest,
            "flink-cep": self._flink_cep,
            "flink-sql": self._flink_sql,
            "siddhi": self._siddhi,
            "core": self._core,
            "bobo": self._bobo,
        }

    def prepare(self, peer: str) -> None:
        """Set up a peer with its compiled driver.

        Raises:
            Unavailable: The peer cannot be set up here.
        """
        environment = set_up(PEERS[peer], self._folder)
        if environment.jars:
            sources = (HERE / "drivers" / peer).glob("*.java")
            made = {"Queries.java": java_queries(self._cases)} if peer == "flink" else {}
            self._classes[peer] = compiled(environment, self._tag, sources, made)
        self._environments[peer] = environment

    def version(self, system: System) -> str:
        """Return the version of an engine, which is reported with each result."""
        return self._environments[system.peer].version if system.peer else f"kernels {kernel_digest()}"

    def launch(self, system: System, case: Case, mode: Mode, files: Files) -> Launch:
        """Return the command of a run, and write the files that the command needs besides the events."""
        files.folder.mkdir(parents=True, exist_ok=True)
        return self._launchers[system.name](case, mode, files)

    def _flink_cep(self, case: Case, mode: Mode, files: Files) -> Launch:
        words = ["--source", mode.source, "--parallelism", str(mode.threads), "--query", case.name]
        return self._java("flink", "FlinkDriver", [*files.words, *words])

    def _flink_sql(self, case: Case, mode: Mode, files: Files) -> Launch:
        types = () if mode.variant == UNFILTERED else case.wording("flink-sql").types
        words = ["--source", mode.source, "--parallelism", str(mode.threads)]
        words += ["--types", ",".join(f"'{name}'" for name in types)]
        words += ["--sql", _written(files.folder / "query.sql", case.texts("flink-sql")[0])]
        return self._java("flink", "FlinkDriver", [*files.words, *words])

    def _siddhi(self, case: Case, mode: Mode, files: Files) -> Launch:
        app = _written(files.folder / "app.siddhi", siddhi_app(case.texts("siddhi"), is_whole=case.is_aggregate))
        words = ["--source", mode.source, "--app", app, "--patterns", str(len(case.patterns))]
        return self._java("siddhi", "SiddhiDriver", [*files.words, *words])

    def _core(self, case: Case, mode: Mode, files: Files) -> Launch:
        queries = _written(files.folder / "queries.json", json.dumps(case.texts("core")))
        return self._python("core", "core_driver", [*files.words, "--source", mode.source, "--queries", queries])

    def _bobo(self, case: Case, mode: Mode, files: Files) -> Launch:
        module = _written(files.folder / "bobo_queries.py", bobo_module(case.texts("bobo")))
        return self._python("bobo", "bobo_driver", [*files.words, "--source", mode.source, "--queries", module])

    def _java(self, peer: str, main: str, words: Sequence[str]) -> Launch:
        opened = [word for name in OPEN_PACKAGES for word in ("--add-opens", f"java.base/{name}=ALL-UNNAMED")]
        path = f"{self._classes[peer]}{os.pathsep}{self._environments[peer].jars}"
        command = (str(java_tool("java")), f"-Xmx{HEAP}", *opened, "-cp", path, main, *words)
        return Launch(command=command, environment={})

    def _python(self, peer: str, driver: str, words: Sequence[str]) -> Launch:
        python = str(self._environments[peer].python)
        command = (python, "-m", f"benchmarks.peers.drivers.{driver}", *words)
        return Launch(command=command, environment={"PYTHONPATH": str(ROOT)})


def _library(case: Case, mode: Mode, files: Files) -> Launch:
    queries = _written(files.folder / "queries.json", json.dumps(case.texts("forestall")))
    words = [*files.words, "--source", mode.source, "--queries", queries]
    driver = "join_driver" if case.is_join else "aggregate_driver" if case.is_aggregate else "library_driver"
    words += ["--variant", mode.variant] if case.is_join else []
    command = (sys.executable, "-m", f"benchmarks.peers.drivers.{driver}", *words)
    return Launch(command=command, environment={"PYTHONPATH": str(ROOT)})


def _match(case: Case, mode: Mode, files: Files) -> Launch:
    found = files.folder / "found.json"
    command = (*_forestall("match", case, files), "--json", "--outputs", "matches")
    return Launch(command=command, environment={}, output=found, answer=found)


def _backtest(case: Case, mode: Mode, files: Files) -> Launch:
    found = files.folder / f"found-{files.events.stem}"
    command = (*_forestall("backtest", case, files), "--output", str(found), "--limit", "0", "--json")
    return Launch(command=(*command, "--cores", str(mode.threads)), environment={}, answer=found)


def _forestall(name: str, case: Case, files: Files) -> tuple[str, ...]:
    patterns = _written(files.folder / "queries.pattern", "".join(case.texts("forestall")))
    forestall = str(Path(sys.executable).parent / "forestall")
    return (forestall, name, "--pattern", patterns, "--events", str(files.events))


def _written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def siddhi_app(texts: Sequence[str], *, is_whole: bool = False) -> str:
    """Return a Siddhi application with queries, in event time.

    The queries are partitioned by key, unless ``is_whole``.
    """
    stream = "define stream S (number long, type string, key string, value double, moment long);"
    if is_whole:
        return f"@app:playback\n{stream}\n{''.join(texts)}"
    return f"@app:playback\n{stream}\npartition with (key of S) begin\n{''.join(texts)}end;\n"


def bobo_module(texts: Sequence[str]) -> str:
    """Return a Python module with the patterns of a case."""
    built = "".join(f"({text.strip()}).generate(),\n" for text in texts)
    return (
        "from bobocep.cep.phenom.pattern.builder import BoboPatternBuilder\n\n\n"
        f"def patterns():\n    return [\n{built}]\n"
    )


def java_queries(cases: Sequence[Case]) -> str:
    """Return a Java class with the patterns of every case that the library supports."""
    stated = [case for case in cases if case.wording("flink-cep").text]
    branches = "".join(
        f'            case "{case.name}" -> List.of({", ".join(text.strip() for text in case.texts("flink-cep"))});\n'
        for case in stated
    )
    return (
        "import java.time.Duration;\nimport java.util.List;\nimport org.apache.flink.cep.pattern.Pattern;\n\n"
        "public final class Queries extends Conditions {\n"
        "    static List<Pattern<Event, ?>> of(String name) {\n        return switch (name) {\n"
        f"{branches}"
        "            default -> throw new IllegalArgumentException(name);\n        };\n    }\n}\n"
    )
