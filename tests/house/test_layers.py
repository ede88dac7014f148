"""The import contracts fail when an import is planted that they forbid."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from house import PACKAGES, ROOT

PLANTS = {
    "upward import": ("streams/planted.py", "from nfa import Query", "Imports point down"),
    "upward import, high": ("service/planted.py", "import api", "Imports point down"),
    "numba outside kernels": ("nfa/planted.py", "from numba import njit", "numba is imported inside kernels"),
    "redis outside the stores": ("service/planted.py", "import redis", "Redis is reached through"),
    "stores in the API": ("api/planted.py", "from service.stores import AlertFilter", "The API uses service"),
    "a store in the API": (
        "api/planted.py",
        "from service.stores.results.alerts import x",
        "The API uses service",
    ),
    "redis in the core": ("constraints/planted.py", "import redis", "The core knows no framework"),
    "pyspark in shards": ("shards/planted.py", "import pyspark.sql", "The core knows no framework"),
    "redis in shards": ("shards/planted.py", "import redis", "The core knows no framework"),
    "a web framework in shards": ("shards/planted.py", "import starlette", "The core knows no framework"),
    "pipeline in shards": ("shards/planted.py", "from pipeline import cluster", "Imports point down"),
    "framework in the core": ("workflows/planted.py", "import pydantic", "The core knows no framework"),
    "fastapi in service": ("service/planted.py", "from fastapi import FastAPI", "The HTTP framework stays in api"),
    "pyspark in service": ("service/planted.py", "import pyspark.sql", "Only pipeline imports pyspark"),
    "pyspark in a local run": ("service/runs/stream_run.py", "import pyspark.sql", "Local runs use no Spark"),
    "pipeline in a local run": (
        "service/runs/stream_run.py",
        "from pipeline import cluster",
        "Local runs use no Spark",
    ),
    "pipeline in a dry run": ("service/trials/dry_runs.py", "from pipeline import cluster", "Local runs use no Spark"),
    "pipeline in a trace": ("service/trials/traces.py", "from pipeline import cluster", "Local runs use no Spark"),
    "opentelemetry elsewhere": ("service/planted.py", "import opentelemetry.sdk.trace", "OpenTelemetry is an extra"),
    "test tool in a package": ("nfa/planted.py", "import hypothesis", "No package imports test tools"),
    "a builder in a package": (
        "nfa/planted.py",
        "from tests.builders import patterns",
        "No package imports test tools",
    ),
    "literature in a package": ("joins/planted.py", "import literature.spilling", "No package imports literature"),
    "cycle": ("streams/planted.py", "from streams import planted_too", "No cycles"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def lint(tree: Path) -> tuple[bool, str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200"}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def reports(tree: Path) -> tuple[tuple[bool, str], tuple[bool, str]]:
    """The reports of the tree as it is, and with all planted imports, each in a module of its own."""
    before = lint(tree)
    (tree / "streams/planted_too.py").write_text(f"from streams import {module_of('cycle').rpartition('.')[2]}\n")
    for plant, (_, line, _) in PLANTS.items():
        planted = (tree / module_of(plant).replace(".", "/")).with_suffix(".py")
        planted.write_text(f"{planted.read_text() if planted.exists() else ''}\n{line}\n")
    return before, lint(tree)


def module_of(plant: str) -> str:
    """The module that has the planted import: one that exists, or a new one."""
    module = PLANTS[plant][0].removesuffix(".py").replace("/", ".")
    return f"{module}_{list(PLANTS).index(plant)}" if module.endswith(".planted") else module


def arrow_of(plant: str) -> str:
    """How the planted import is reported."""
    if plant == "cycle":
        return f".planted_too -> .{module_of(plant).rpartition('.')[2]} "
    return f"{module_of(plant)} -> {PLANTS[plant][1].split()[1].partition('.')[0]}"


def test_tree_keeps_the_contracts(reports):
    is_kept, output = reports[0]
    assert is_kept, output


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_import_fails(reports, plant):
    (is_kept, output), contract = reports[1], PLANTS[plant][2]
    assert not is_kept
    assert re.search(rf"^{contract}.* BROKEN", output, re.MULTILINE), output
    _, *sections = re.split(r"^(.+)\n-+\n", output.partition("Broken contracts")[2], flags=re.MULTILINE)
    reports = [text for title, text in zip(sections[::2], sections[1::2], strict=True) if title.startswith(contract)]
    assert any(arrow_of(plant) in report for report in reports), output
