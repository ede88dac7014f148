"""Code blocks of the documents are run: Python and shell as printed, data and patterns by their parsers.

The blocks of one document run in order in one folder, which holds links to the project's own files. Consecutive Python
blocks share one process, up to the next shell block. A block that needs something a test cannot provide (a running
service, a clone) has a comment before it, ``<!-- not run: why -->``; its commands are still compared with the Makefile
and the command line. So are the commands of the tutorial, which has a test of its own.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from house import ROOT, project_files
from house.documents import code_blocks
from nfa import parse_patterns
from service.cli.app import build_app
from tests.builders.worked_examples import examples_in

DOCUMENTS = [path for path in project_files(".md") if "tests" not in path.relative_to(ROOT).parts]
PLAYED = {ROOT / "docs" / name for name in ("tutorial.md", "projects.md")}  # by a test of their own
PROSE = {"text", "mermaid", "diff"}
GROUPS = {
    "alerts", "backtests", "constraints", "dead-letters", "derived-events", "deviations", "endings", "event-types",
    "feed", "aggregates", "incidents", "joins", "keys", "patterns", "sinks", "streams", "traces",
    "webhooks", "workflows",
}  # fmt: skip
ON_SERVICE = {"list", "show", "add"}  # of constraints: what follows else is a model
SHELL = {"bash", "sh", "console"}
SECONDS = 600  # the first block that matches something compiles the kernels, where they are not compiled yet
PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "toml": tomllib.loads,
    "pattern": parse_patterns,
    "examples": lambda text: list(examples_in(text)),  # run by tests/nfa/test_examples.py
}


@pytest.fixture
def workplace(tmp_path):
    for path in ROOT.iterdir():
        if path.name not in {".git", "data"}:
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


@pytest.fixture
def run(commands, workplace):
    """Runs a command of a document; returns its status and what it prints."""
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONSAFEPATH": "1", "COLUMNS": "200", "TERM": "dumb"}

    def run(*command):
        done = subprocess.run(
            command, cwd=workplace, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return done.returncode, done.stdout + done.stderr

    return run


def commands(text):
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        yield from (part.strip() for part in re.split(r"&&|\||;", line.removeprefix("$ ").partition(" #")[0]))


def named(words):
    """The words that name the command: one behind the program, and one more in a group of commands."""
    if words[1] == "constraints" and words[2] not in ON_SERVICE:
        return "constraints", "derive"
    return tuple(words[1:3] if len(words) > 2 and words[1] in GROUPS else words[1:2])


@cache
def whole_app():
    return build_app()


@cache
def help_of(command):
    done = CliRunner().invoke(whole_app(), [*command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    return done.exit_code, done.output


def check_commands(text):
    """Targets of make and commands of forestall exist, with the options shown."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for command in commands(text):
        if not re.match(r"(\S*/)?(make|forestall)\b", command):
            continue
        words = shlex.split(command)
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= targets, command
        elif words[0].endswith("forestall") and len(words) > 1:
            status, help_text = help_of(named(words))
            assert status == 0, f"{command}\n{help_text}"
            options = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
            assert {option for option in options if option not in help_text} == set(), command


def check_block(block, run):
    if block.language in SHELL:
        check_commands(block.text)
        script = "\n".join(line.removeprefix("$ ") for line in block.text.splitlines())
        return run("bash", *(["-n"] if block.reason else []), "-euo", "pipefail", "-c", script)
    assert block.language in PARSERS, f"say what the block is: {sorted([*PARSERS, *SHELL, *PROSE, 'python'])}"
    PARSERS[block.language](block.text)
    return 0, ""


def check_python(lines, run):
    """Python blocks in the lines of their document, so that a traceback names the line there."""
    return run("python-forked", "-c", "\n".join(lines)) if lines else (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_blocks_work(document, run):
    lines: list[str] = []
    is_run = True
    for block in code_blocks(document.read_text(encoding="utf-8")):
        if block.language in PROSE or (block.reason and block.language not in SHELL):
            continue
        if document in PLAYED and block.language in SHELL:
            check_commands(block.text)
            continue
        if block.language == "python":
            lines += [""] * (block.line - len(lines)) + block.text.splitlines()
            is_run = False
            continue
        if block.language in SHELL and not is_run:
            status, output = check_python(lines, run)
            assert status == 0, f"{document.name}, Python before line {block.line}:\n{output}"
            is_run = True
        status, output = check_block(block, run)
        assert status == 0, f"{document.name}, block of line {block.line}:\n{output}"
    if not is_run:
        status, output = check_python(lines, run)
        assert status == 0, f"{document.name}, Python:\n{output}"


def test_blocks_are_found_with_language_place_and_reason():
    text = "# A\n\n```python\nx = 1\n```\n\n<!-- not run: needs the service -->\n```bash\nmake demo\n```\n"
    first, second = code_blocks(text)
    assert (first.line, first.language, first.text, first.reason) == (3, "python", "x = 1\n", "")
    assert (second.language, second.text, second.reason) == ("bash", "make demo\n", "needs the service")


@pytest.mark.parametrize("text", ["make dance", "cd x && make dance", "make test dance"])
def test_unknown_target_is_seen(text):
    with pytest.raises(AssertionError):
        check_commands(text)


def test_failing_python_is_seen_with_its_line(tmp_path, run):
    document = tmp_path / "page.md"
    document.write_text("# A\n\n```python\nx = 1\n```\n\nB\n\n```python\nassert x == 2\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"(?s)page\.md, Python:.*line 10.*AssertionError"):
        test_blocks_work(document, run)
