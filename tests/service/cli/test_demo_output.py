"""What the demo prints about its result."""

import re
from pathlib import Path

import pytest
from rich.console import Console

from service.cli.demo import _show, _tell_console
from service.demo import DemoResult

README = Path(__file__).parents[3] / "README.md"


@pytest.fixture
def result():
    return DemoResult(
        events=20,
        alerts={"Q1": 1},
        expected=1,
        webhooks=1,
        endings={},
        examples=(),
        peak_held=1,
        peak_held_unpruned=2,
        is_equal=True,
    )


def test_the_last_line_names_a_section_of_the_readme(capsys, result):
    _show(Console(), result)
    section = re.search(r"README\.md, section (.+)\.", capsys.readouterr().out)
    assert section is not None
    assert f"\n## {section[1]}\n" in README.read_text()


def test_the_key_of_the_console_is_on_the_line_of_its_address(capsys):
    key = "fs_" + "k" * 80
    _tell_console(Console(width=80), "http://127.0.0.1:8001", key)
    assert capsys.readouterr().out == f"console: http://127.0.0.1:8001, log in with the key {key}\n"
