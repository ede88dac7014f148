"""The import contracts fail when an import is planted that they forbid."""

import os
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
    "pyspark in a local run": ("service/trials/matching.py", "import pyspark.sql", "Local runs use no Spark"),
    "pipeline in a local run": (
        "service/trials/matching.py",
        "from pipeline import cluster",
        "Local runs use no Spark",
    ),
    "pipeline in a dry run": ("service/trials/dry_runs.py", "from pipeline import cluster", "Local runs use no Spark"),
    "pipeline in a trace": ("service/trials/traces.py", "from pipeline import cluster", "Local runs use no Spark"),
    "opentelemetry elsewhere": ("service/planted.py", "import opentelemetry.sdk.trace", "OpenTelemetry is an extra"),
    "test tool in a package": ("nfa/planted.py", "import hypothesis", "Test tools are imported by testing modules"),
    "literature in a package": ("joins/planted.py", "import literature.spilling", "No package imports literature"),
    "cycle": ("streams/planted.py", "from streams import planted_too", "No cycles"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "streams/planted_too.py").write_text("from streams import errors\n")
    return folder


def lint(tree: Path) -> tuple[bool, str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200"}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def test_tree_keeps_the_contracts(tree):
    is_kept, output = lint(tree)
    assert is_kept, output


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_import_fails(tree, plant):
    name, line, contract = PLANTS[plant]
    planted = tree / name
    before = planted.read_text() if planted.exists() else None
    planted.write_text(f"{before or ''}\n{line}\n")
    if plant == "cycle":
        (tree / "streams/planted_too.py").write_text("from streams import planted\n")
    try:
        is_kept, output = lint(tree)
    finally:
        if before is None:
            planted.unlink()
        else:
            planted.write_text(before)
    assert not is_kept
    broken = [row for row in output.splitlines() if " BROKEN" in row]
    assert any(contract in row for row in broken), output
