"""The tutorial, and the page about projects, word for word: each in one shell, in an empty folder, with a service.

Each line of a block of output is part of what the block before it printed, in any order; ``…`` matches any text. Only
the port of the receiver differs from the page, because a test cannot rely on a fixed port.
"""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from house import ROOT
from house.documents import Block, code_blocks

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]

PAGES = [
    ROOT / "docs" / "tutorial.md",
    pytest.param(ROOT / "docs" / "projects.md", marks=pytest.mark.deep),  # its commands each day in tests/service/cli
]
SECONDS = 1_200  # kernels are compiled where they are not yet
MARK = "=== block of line "
FIRST = 'trap \'status=$?; kill "${SERVICE:-}" "${RECEIVER:-}" 2>/dev/null || true; wait; exit $status\' EXIT'


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def environment(folder, commands):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FORESTALL_")}
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), kept["PATH"]])
    own = {"PROJECT": str(ROOT), "HOME": str(folder), "PATH": path, "FORESTALL_API_PORT": free_port()}
    return {**kept, **own, "TERM": "dumb", "COLUMNS": "200"}


def blocks_of(page):
    """The blocks of a page to run, each with the lines that must be in its output."""
    found: list[tuple[Block, list[str]]] = []
    for block in code_blocks(page.read_text(encoding="utf-8")):
        if block.language == "bash" and not block.reason:
            found.append((block, []))
        elif block.language == "text":
            found[-1][1].extend(block.text.splitlines())
    return found


def outputs(printed):
    """What each block printed, by its line."""
    parts = printed.split(MARK)[1:]
    return {int(head): text for head, _, text in (part.partition("\n") for part in parts)}


def is_printed(line, text):
    words = (re.escape(word) for part in line.split("…") for word in [" ".join(part.split())])
    return re.search(".*".join(words), "\n".join(" ".join(one.split()) for one in text.splitlines()))


@pytest.mark.parametrize("page", PAGES, ids=["tutorial.md", "projects.md"])
def test_the_page_works_as_printed(page, tmp_path, commands):
    blocks = blocks_of(page)
    script = "\n".join([FIRST, *(f'echo "{MARK}{block.line}"\n{block.text}' for block, _ in blocks)])
    log = tmp_path.parent / "printed.txt"
    with log.open("wb") as out:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace("9000", free_port())],
            cwd=tmp_path, env=environment(tmp_path, commands), stdout=out, stderr=out, timeout=SECONDS, check=False,
        )  # fmt: skip
    printed = log.read_text(encoding="utf-8")
    assert done.returncode == 0, printed
    found = outputs(printed)
    for block, lines in blocks:
        missing = [line for line in lines if not is_printed(line, found[block.line])]
        assert not missing, f"the block of line {block.line} does not print {missing}, but\n{found[block.line]}"
