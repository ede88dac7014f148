"""Options are converted without pydantic, to what typer makes of them."""

import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from service.cli.coercion import PlainGroup, make_plain


class Color(Enum):
    RED = "red"
    BLUE = "blue"


def seen_by(arguments: list[str], *, is_plain: bool) -> tuple[int, str, list[Any]]:
    """Exit status, output, and the values that a command received."""
    app = typer.Typer(cls=PlainGroup if is_plain else None, pretty_exceptions_enable=False)
    seen: list[Any] = []

    @app.callback()
    def _several() -> None: ...

    @app.command("show")
    def _show(
        text: Annotated[str, typer.Option()] = "none",
        path: Annotated[Path | None, typer.Option(metavar="P")] = None,
        color: Annotated[Color, typer.Option()] = Color.RED,
        number: Annotated[int, typer.Option(min=1, max=9, metavar="N")] = 3,
        share: Annotated[float | None, typer.Option(metavar="S")] = None,
        named: Annotated[list[str] | None, typer.Option(metavar="T")] = None,
        files: Annotated[list[Path] | None, typer.Argument(metavar="FILES")] = None,
    ) -> None:
        seen.extend((text, path, color, number, share, named, files))

    if is_plain:
        make_plain(app)
    result = CliRunner().invoke(app, ["show", *arguments])
    return result.exit_code, result.output, seen


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--text", "x", "--path", "absent", "--color", "blue", "--number", "4", "--share", "0.5"],
        ["--named", "a", "--named", "b", "one", "two"],
        ["--text", "", "--path", "", "--number", " 5 "],
        ["--color", "green"],
        ["--number", "12"],
        ["--number", "x"],
        ["--share", "inf"],
    ],
    ids=" ".join,
)
def test_values_and_refusals_are_typers(arguments):
    (*plain, values), (*typers, typers_values) = (seen_by(arguments, is_plain=is_plain) for is_plain in (True, False))
    assert values == typers_values
    assert [words(part, arguments) for part in plain] == [words(part, arguments) for part in typers]


def words(part, arguments):
    """A part of a result without line breaks, and without the given value, which only our refusals repeat."""
    text = " ".join(str(part).replace("│", " ").split())
    return text.replace(f", got {arguments[-1]!r}", "") if arguments else text


def test_match_loads_only_what_it_needs(tmp_path):
    (tmp_path / "p.pattern").write_text("PATTERN p\nEVENT SEQ(a x, b y)\n")
    (tmp_path / "e.csv").write_text("subject,type,time\no,a,2026-01-01T00:00:00Z\no,b,2026-01-01T00:00:01Z\n")
    program = (
        "import sys\nfrom service.cli.app import build_app\n"
        "build_app(['match'])(['match', '--pattern', 'p.pattern', '--events', 'e.csv', '--key', 'subject'],"
        " standalone_mode=False)\nprint({'pydantic', 'constraints', 'pipeline', 'nfa'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("\n{'nfa'}\n")
