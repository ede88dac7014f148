"""The wheel holds the front and, below it, the other packages with their names rewritten; and nothing else."""

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from house import PACKAGES, ROOT
from relocation import FRONT, INNER, PREFIX, Relocation

MODULES = [Path("nfa/__init__.py"), Path("nfa/inner/__init__.py"), Path("nfa/inner/part.py"), Path("api/__main__.py")]
RELOCATION = Relocation(["forestall", "nfa", "api"], [*MODULES, Path("nfa/inner/part.pyi"), Path("nfa/words.json")])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def names(wheel):
    return wheel.namelist()


def shipped():
    """Where each file of the packages, and of the manual, is in a wheel."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                place = path.relative_to(ROOT).as_posix()
                yield place if package == FRONT else f"{FRONT}/{INNER}/{place}"
    for path in (ROOT / "docs").rglob("*"):
        if path.suffix in (".md", ".png", ".svg"):
            yield f"{FRONT}/{INNER}/api/manual/pages/{path.relative_to(ROOT / 'docs').as_posix()}"


def test_only_the_front_is_at_the_top(names):
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {FRONT}


def test_types_and_data_are_shipped(names):
    inner = f"{FRONT}/{INNER}/__init__.py"
    assert {*shipped(), inner} == {name for name in names if ".dist-info/" not in name}


def test_no_import_in_a_wheel_leads_to_a_package_at_the_top(wheel, names):
    moved = set(PACKAGES) - {FRONT}
    likely = re.compile(rb"\b(?:from|import)\b.*(?<![.\w])(?:%s)\b" % "|".join(sorted(moved)).encode())
    texts = {name: wheel.read(name) for name in names if name.endswith((".py", ".pyi"))}
    for path in (name for name, text in texts.items() if likely.search(text)):
        for node in ast.walk(ast.parse(texts[path])):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found = [str(node.module)]
            else:
                continue
            assert not {name.partition(".")[0] for name in found} & moved, (path, node.lineno)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from nfa import x", f"from {PREFIX}nfa import x"),
        (
            "from nfa.inner.part import (\n    x,\n    y as z,\n)",
            f"from {PREFIX}nfa.inner.part import (\n    x,\n    y as z,\n)",
        ),
        ("é = 'é'; from nfa import x", f"é = 'é'; from {PREFIX}nfa import x"),
        ("import nfa", f"import {PREFIX}nfa as nfa"),
        ("import os, nfa.inner as inner", f"import os, {PREFIX}nfa.inner as inner"),
        ("def f():\n    from api import y  # why", f"def f():\n    from {PREFIX}api import y  # why"),
        ("x = 'nfa.inner'", f"x = '{PREFIX}nfa.inner'"),
        ('x = ["-m", "api.__main__"]', f'x = ["-m", "{PREFIX}api.__main__"]'),
        ("x = 'nfa.inner.part:f:a,b'", f"x = '{PREFIX}nfa.inner.part:f:a,b'"),
        ("x = f'nfa.inner.{y}'", f"x = f'{PREFIX}nfa.inner.{{y}}'"),
    ],
)
def test_a_name_of_a_module_is_rewritten(line, expected):
    assert RELOCATION.rewritten(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "from forestall.frames import x",
        "from nfalse import x",
        "from .nfa import x",
        "import apiary",
        "x = 'nfa'",
        "x = 'nfa.unknown'",
        "x = 'see nfa.inner'",
        "x = nfa.inner",
        "x = f'{nfa}.inner'",
        "# from nfa import x",
    ],
)
def test_anything_else_stays(line):
    assert RELOCATION.rewritten(line) == line


def test_an_import_that_would_bind_the_top_is_refused():
    with pytest.raises(ValueError, match="line 2: write from … import …"):
        RELOCATION.rewritten("\nimport nfa.inner")
