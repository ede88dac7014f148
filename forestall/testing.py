"""A pytest plugin. It makes a test of each document of the kind ``test`` of a project, as ``forestall test`` runs it.

``pytest_plugins = ["forestall.testing"]`` in ``conftest.py``, or ``-p forestall.testing``, enables the plugin. The
pytest option ``forestall_projects`` names the folders of projects.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from service.projects import Case, LocalProject, cases_of, outcome_of, read_project, run_case
from streams import ForestallError
from streams.compiling import compile_kernels

_OPTION = "forestall_projects"
_SUFFIXES = (".yaml", ".yml", ".json")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the folders of projects."""
    parser.addini(_OPTION, "Folders of projects whose test documents are tests.", type="paths", default=[])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a file of documents if it is in the folder of a project."""
    if file_path.suffix not in _SUFFIXES:
        return None
    folders = [Path(path).resolve() for path in parent.config.getini(_OPTION)]
    owners = [folder for folder in folders if folder in file_path.resolve().parents]
    return _DocumentFile.from_parent(parent, path=file_path, folder=owners[0]) if owners else None


class _DocumentFile(pytest.File):
    def __init__(self, *, folder: Path, **options: Any) -> None:
        super().__init__(**options)
        self._folder = folder

    def collect(self) -> Iterator[pytest.Item]:
        try:
            project, cases = _project(self._folder)
        except ForestallError as error:
            raise self.CollectError(error.message) from error
        for case in cases:
            if case.document.file.resolve() == self.path.resolve():
                yield _CaseItem.from_parent(self, name=case.name, case=case, project=project)


class _Differs(Exception):
    """The results of a test differ from the expected ones. The message shows both side by side."""


class _CaseItem(pytest.Item):
    def __init__(self, *, case: Case, project: LocalProject, **options: Any) -> None:
        super().__init__(**options)
        self._case, self._rules = case, project

    def runtest(self) -> None:
        begin_s = time.perf_counter()
        case_run = run_case(self._case, self._rules)
        outcome = outcome_of(self._case, case_run, time.perf_counter() - begin_s)
        if not outcome.is_right:
            losses = [f"{name}: {sentence}" for name, sentence in case_run.losses.items()]
            raise _Differs("\n".join([f"at {self._case.document.place()}", *outcome.side_by_side(), *losses]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, _Differs) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


@cache
def _project(folder: Path) -> tuple[LocalProject, list[Case]]:
    documents = read_project(folder)
    project = LocalProject.of(documents, folder)
    compile_kernels(project.exercises())
    return project, list(cases_of(documents, project))
