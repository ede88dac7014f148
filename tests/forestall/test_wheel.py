"""The wheel runs by itself: in an environment with its base dependencies only, and with other packages of its names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from house import PACKAGES, ROOT
from house.sources import PROJECT as SETTINGS

PATTERN = "PATTERN p EVENT SEQ(A a, B b [v > 1]) WITHIN 60 s RETURN a.v AS first, b.v AS second"
EVENTS = [
    {"id": "1", "type": "A", "time": "2026-01-01T00:00:00Z", "key": "k", "data": {"v": 1}},
    {"id": "2", "type": "B", "time": "2026-01-01T00:00:01Z", "key": "k", "data": {"v": 2}},
    {"id": "3", "type": "C", "time": "2026-01-01T00:00:02Z", "key": "k", "data": {"v": 3}},
]
PROJECT = """
kind: stream
name: orders
key: key
---
kind: pattern
name: p
stream: orders
text: PATTERN p EVENT SEQ(A a, B b)
---
kind: test
name: t
events: {k: "A1 B2"}
expect: {alerts: ["p a=A1 b=B2"]}
"""
COMMANDS = {
    "match": "match --pattern p.pattern --events events.jsonl --constraints rules.json --workflow flow.yaml --json",
    "check": "check p.pattern --workflow flow.yaml --json",
    "run": "run project --events events.jsonl --output json",
    "test": "test project",
    "discover": "discover events.jsonl",
    "conformance": "conformance flow.yaml events.jsonl --json",
}


def needed():
    """The distributions of the base dependencies, from the requirements of this project and of its dependencies."""
    found, left = {}, [Requirement(text) for text in SETTINGS["project"]["dependencies"]]
    while left:
        one = left.pop()
        if one.name.lower() in found:
            continue
        try:
            found[one.name.lower()] = distribution(one.name)
        except PackageNotFoundError:  # for other platforms
            continue
        for text in found[one.name.lower()].requires or ():
            further = Requirement(text)
            extras = [{"extra": extra} for extra in ("", *one.extras)]
            if further.marker is None or any(map(further.marker.evaluate, extras)):
                left.append(further)
    return list(found.values())


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the wheel, links to its base dependencies, and foreign packages of the same names."""
    folder = tmp_path_factory.mktemp("environment")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "wheel")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for one in needed():
        tops = {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(one.locate_file(top))))
    for package in set(PACKAGES) - {"forestall"}:
        (site / package).mkdir()
        (site / package / "__init__.py").write_text("raise ImportError('a package of another distribution')")
    return folder / "venv" / "bin" / "python"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "p.pattern").write_text(PATTERN)
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in EVENTS))
    (folder / "rules.json").write_text('["prior(A, B)"]')
    (folder / "flow.yaml").write_text("tree: {sequence: [A, B, C]}")
    (folder / "project").mkdir()
    (folder / "project" / "p.yaml").write_text(PROJECT)
    return folder


def called(python, folder, *words):
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    variables |= {"NUMBA_DISABLE_JIT": "1"}  # kernels of a wheel have other names, and would be compiled anew
    return subprocess.run([str(python), *words], cwd=folder, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_the_wheel_prints_what_it_prints_in_the_repository(environment, work, commands, name):
    words = COMMANDS[name].split()
    found = called(environment, work, "-m", "forestall.command", *words)
    expected = called(commands / "forestall", work, *words)
    assert (found.stdout, found.returncode) == (expected.stdout, expected.returncode), found.stderr
    assert found.stdout, found.stderr


@pytest.mark.slow
def test_the_library_of_the_wheel_matches(environment, work):
    program = (
        "import json, sys, forestall\n"
        "rows = [json.loads(line) for line in open('events.jsonl')]\n"
        f"found = forestall.match(rows, {PATTERN!r})\n"
        "print(json.dumps(found.to_dict()['matches']))\n"
        "print(sorted({'pandas', 'pyspark', 'redis', 'pydantic', 'fastapi'} & set(sys.modules)))"
    )
    found = called(environment, work, "-c", program)
    matches, loaded = found.stdout.splitlines() or ["", found.stderr]
    assert (json.loads(matches)[0]["returns"], loaded) == ({"first": 1, "second": 2}, "[]")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "extra"), [("serve", "spark"), ("streams list", "service"), ("backtest --help", "service")]
)
def test_a_command_that_needs_an_extra_names_it(environment, work, command, extra):
    found = called(environment, work, "-m", "forestall.command", *command.split())
    assert found.returncode == 2
    assert f"pip install 'forestall[{extra}]'" in found.stderr


def test_importing_the_front_loads_no_package():
    program = (
        "import sys, forestall; print([one for one in ('numpy', 'pyarrow', 'nfa', 'service') if one in sys.modules])"
    )
    assert called(sys.executable, ROOT, "-c", program).stdout == "[]\n"
