"""Folders, the wheel's packages, the import contracts and the documents name the same packages."""

import ast
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from house import PACKAGES, ROOT, project_files
from house.sources import PROJECT

OTHER_FOLDERS = {"benchmarks", "deploy", "docs", "literature", "requirements", "scripts", "tests"}
VAGUE_NAMES = {"common", "core", "utils", "misc", "events"}


def tracked():
    return [path.relative_to(ROOT) for path in project_files()]


def top_folders():
    return {path.parts[0] for path in tracked() if len(path.parts) > 1 and not path.parts[0].startswith(".")}


def modules():
    """Modules and folders of the packages, as (path, name)."""
    files = [path for path in tracked() if path.parts[0] in PACKAGES and path.suffix == ".py"]
    folders = {folder for path in files for folder in path.parents if folder.parts}
    return [(path, path.stem) for path in files if path.stem != "__init__"] + [(path, path.name) for path in folders]


def test_folders_are_the_packages():
    assert top_folders() - OTHER_FOLDERS == set(PACKAGES)


def test_import_contracts_cover_the_packages():
    contracts = PROJECT["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers")
    cycles = next(contract["ancestors"] for contract in contracts["contracts"] if contract["id"] == "cycles")
    layered = {package for layer in layers for package in layer.split(" | ")}
    assert set(contracts["root_packages"]) == layered == set(cycles) == set(PACKAGES)


def test_type_checker_covers_the_packages():
    assert set(PACKAGES) <= set(PROJECT["tool"]["mypy"]["files"])


def test_architecture_has_a_row_for_each_package():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^[#|*\-\s]*`(\w+)/?`", text, flags=re.MULTILINE))
    assert set(PACKAGES) <= named


@pytest.mark.parametrize("package", PACKAGES)
def test_package_resolves_inside_this_tree(package):
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).resolve() == ROOT / package / "__init__.py"


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_typed_and_says_its_purpose(package):
    assert (ROOT / package / "py.typed").is_file()
    docstring = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8")))
    assert docstring is not None
    assert len(docstring.split()) > 20


def test_every_folder_of_a_package_has_a_front():
    folders = [path for path, _ in modules() if not path.suffix]
    assert [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file()] == []


def test_no_folder_is_crowded():
    """Catalogues are long by nature: one command, router or schema file for each resource."""
    sources = [path for path, _ in modules() if path.suffix and path.name != "__init__.py"]
    crowded = {str(folder): count for folder, count in Counter(path.parent for path in sources).items() if count > 20}
    assert set(crowded) == {"service/cli", "api/routers", "api/schemas"}


def test_no_module_hides_the_standard_library():
    assert [str(path) for path, name in modules() if name in sys.stdlib_module_names] == []


def test_no_package_has_a_vague_name():
    assert [str(path) for path, name in modules() if not path.suffix and name in VAGUE_NAMES] == []
    assert not VAGUE_NAMES & top_folders()


def test_test_folders_have_no_front():
    assert [str(path) for path in tracked() if "tests" in path.parts[:2] and path.name == "__init__.py"] == []


def test_each_resource_has_a_router_and_schemas():
    routers, schemas = (
        {path.stem for path in (ROOT / "api" / part).glob("*.py")} - {"__init__"} for part in ("routers", "schemas")
    )
    assert routers
    assert schemas <= routers
