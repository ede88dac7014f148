"""The types of the client, as mypy in strict mode sees them in a project of a user, and the front's promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parent / "sample"


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """What mypy says about the files of the sample project, outside of this repository and without its settings."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("shop.py", "wrong.txt"):  # the second is a text, so that checks of this repository do not find it
        (folder / f"{Path(name).stem}.py").write_text((SAMPLE / name).read_text(encoding="utf-8"), encoding="utf-8")
    options = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={os.devnull}"]
    command = [sys.executable, "-m", "mypy", *options, "shop.py", "wrong.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_a_project_that_uses_the_client_is_accepted(errors):
    assert [line for line in errors.splitlines() if not line.startswith("wrong.py:")] == []


@pytest.mark.slow
def test_mistakes_are_found(errors):
    lines = (SAMPLE / "wrong.txt").read_text(encoding="utf-8").splitlines()
    expected = {number: line.rpartition("# ")[2] for number, line in enumerate(lines, 1) if "  # " in line}
    found = {
        int(number): code
        for number, code in re.findall(r"^wrong\.py:(\d+): error: .*\[([a-z-]+)\]$", errors, re.MULTILINE)
    }
    assert found == expected
    assert len(expected) == 13


def test_the_front_loads_on_demand():
    script = """
import sys, forestall
print('httpx' in sys.modules, 'numba' in sys.modules)
forestall.Client
print('numba' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False"]
