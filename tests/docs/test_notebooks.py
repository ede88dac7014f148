"""Notebooks of the documentation run: the code of their cells, in order, in one process, and no output is stored."""

from __future__ import annotations

import json
import os
import sys

import pytest

from house import ROOT

FOLDER = ROOT / "docs" / "notebooks"
SHARED = ROOT.parent / "shared" / "data"
FILES = {
    "receipt.xes.gz": SHARED / "logs" / "receipt.xes.gz",
    "receipt.bpmn": SHARED / "models" / "pm4py" / "receipt.bpmn",
}
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def cells_of(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]


def run(name, folder, monkeypatch):
    """Run the code of a notebook; its last values show themselves as in a notebook."""
    (folder / "docs" / "notebooks").mkdir(parents=True, exist_ok=True)
    (folder / "docs" / "examples").symlink_to(ROOT / "docs" / "examples")
    monkeypatch.chdir(folder / "docs" / "notebooks")
    space = {"__name__": name}
    for number, cell in enumerate(one for one in cells_of(name) if one["cell_type"] == "code"):
        lines = "".join(cell["source"])
        *_, last = lines.splitlines()
        exec(compile(lines, f"{name}, cell {number}", "exec"), space)
        if last.isidentifier():
            assert "<" in (getattr(space[last], "_repr_html_", None) or space[last]._repr_svg_)()
    return space


def test_notebooks_are_known_and_have_no_output():
    assert NAMES == ["first-steps.ipynb", "real-log.ipynb", "spark.ipynb", "sql.ipynb"]
    for name in NAMES:
        assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in cells_of(name))


@pytest.mark.parametrize("name", ["first-steps.ipynb", "sql.ipynb"])
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    assert run(name, tmp_path, monkeypatch)


def test_the_notebook_of_a_real_log_runs(tmp_path, monkeypatch):
    for path in FILES.values():
        if not path.exists():
            pytest.skip(f"shared data absent: {path} (issue #5)")
    (tmp_path / "docs" / "notebooks").mkdir(parents=True)
    for name, path in FILES.items():
        (tmp_path / "docs" / "notebooks" / name).symlink_to(path)
    assert run("real-log.ipynb", tmp_path, monkeypatch)["fit"].found.fitting_share == 1


@pytest.mark.spark
def test_the_notebook_of_spark_runs(spark, tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "PYSPARK_PYTHON", sys.executable)
    assert run("spark.ipynb", tmp_path, monkeypatch)["result"].matches.count()
