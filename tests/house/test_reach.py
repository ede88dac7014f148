"""What is shipped can be reached, and a planted module that nothing reaches is found."""

import pytest

from house import PACKAGES, Source, project_files, read_source
from house.reach import Modules, entry_points

FRONTS = [Source(f"{package}/__init__.py", "") for package in PACKAGES]


def unreachable(files, entries=()):
    sources = [*FRONTS, *(Source(path, text) for path, text in files.items())]
    return [found.path for found in Modules(sources).unreachable([*PACKAGES, *entries])]


def test_everything_that_is_shipped_is_reached_and_a_planted_module_is_not():
    sources = [read_source(path) for suffix in (".py", ".pyi") for path in project_files(suffix)]
    shipped = [source for source in sources if source.package in PACKAGES]
    planted = [
        Source("joins/spilling/__init__.py", "from joins.spilling.join import SpillingJoin"),
        Source("joins/spilling/join.py", "from joins.windowed import WindowJoin\nclass SpillingJoin: ..."),
        Source("nfa/planted.py", "import nfa.planted"),
    ]
    found = [str(violation) for violation in Modules([*shipped, *planted]).unreachable(entry_points())]
    assert [line.partition(":")[0] for line in found] == [source.path for source in planted], "\n".join(["", *found])
    assert all("reaches this module" in line for line in found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nfa/__init__.py", "from nfa.inner.planted import x"),
        ("nfa/__init__.py", "from nfa.inner import x"),
        ("nfa/__init__.pyi", "from .inner import x as x"),
        ("service/cli/run.py", "def f():\n    import nfa.inner.planted"),
        ("service/cli/run.py", "def f():\n    from nfa.inner import planted"),
        ("service/cli/run.py", "from nfa import inner"),
        ("service/cli/run.py", "PROCESS = 'nfa.inner.planted'"),
        ("service/cli/run.py", "EXERCISE = 'nfa.inner.planted:f'"),
        ("service/cli/run.py", "NAMES = ['planted']\ndef f(name):\n    return import_module(f'nfa.inner.{name}')"),
    ],
)
def test_a_module_is_reached_by(path, text):
    inner = {"nfa/inner/__init__.py": "from nfa.inner.planted import x, y", "nfa/inner/planted.py": "x = y = 1"}
    entry = {} if path.startswith("nfa/") else {path: text}
    files = {**inner, **entry}
    sources = [source for source in FRONTS if source.path != path] + [Source(path, text)] * (not entry)
    sources += [Source(name, content) for name, content in files.items()]
    found = Modules(sources).unreachable([*PACKAGES, "service.cli.run"])
    assert [violation.path for violation in found] == []


def test_an_export_of_an_inner_front_that_nothing_imports_is_not_reached():
    files = {
        "nfa/inner/__init__.py": "from nfa.inner.used import x\nfrom nfa.inner.planted import y",
        "nfa/inner/used.py": "",
        "nfa/inner/planted.py": "",
        "service/run.py": "from nfa.inner import x",
    }
    assert unreachable(files, ["service.run.main"]) == ["nfa/inner/planted.py"]


def test_a_module_in_a_folder_of_what_is_reached_is_not_reached_by_that():
    assert unreachable({"nfa/planted.py": "", "nfa/reference.py": ""}, ["nfa"]) == [
        "nfa/planted.py",
        "nfa/reference.py",
    ]


def test_entry_points_are_commands_processes_and_what_documents_import():
    found = set(entry_points())
    assert {*PACKAGES, "forestall.command.main"} <= found
    assert {"forestall.process", "service.settings_table"} <= found
    assert "constraints.RuleProduct" in found
