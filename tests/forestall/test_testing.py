"""The plugin of pytest collects the test documents of a project, and shows differences."""

from __future__ import annotations

import subprocess

import pytest

PROJECT = """
kind: stream
name: orders
---
kind: pattern
name: p
stream: orders
text: PATTERN p EVENT SEQ(A a, B b)
"""
RIGHT = 'kind: test\nname: right\nevents: {k: "A1 B2"}\nexpect: {alerts: ["p a=A1 b=B2"]}\n'
WRONG = 'kind: test\nname: wrong\nevents: {k: "A1 B2"}\nexpect: {alerts: ["p a=A1 b=B3"]}\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "orders.yaml").write_text(PROJECT)
    (tmp_path / "rules" / "tests.yaml").write_text(f"{RIGHT}---\n{WRONG}")
    (tmp_path / "other.yaml").write_text(RIGHT)
    (tmp_path / "pytest.ini").write_text("[pytest]\nforestall_projects = rules\n")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["forestall.testing"]\n')
    return tmp_path


@pytest.fixture
def ran(folder, commands):
    def ran(*options):
        words = ["-p", "no:cacheprovider", "-p", "no:schemathesis", *options]
        program = f"import sys, pytest; sys.exit(pytest.main({words!r}))"
        command = [commands / "python-forked", "-c", program]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout

    return ran


def test_documents_are_tests_and_differences_are_shown(ran):
    output = ran("-v")
    assert "rules/tests.yaml::right PASSED" in output
    assert "rules/tests.yaml::wrong FAILED" in output
    assert "1 failed, 1 passed" in output
    assert "p a=A1 b=B3" in output
    assert "Traceback" not in output
    assert "1 passed" in ran("-k", "right")


def test_a_project_that_is_refused_is_an_error_of_collection(folder, ran):
    (folder / "rules" / "orders.yaml").write_text(PROJECT.replace("stream: orders", "stream: order"))
    output = ran()
    assert "no document declares the stream 'order' (did you mean orders?)" in output
    assert "1 error" in output or "2 errors" in output
