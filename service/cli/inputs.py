"""Common inputs of commands: files of patterns, constraints and events, and the progress bar of long work.

Reading patterns and events imports numba, which takes half of the import time of a small command. So numba is imported
only when the first file is read.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import orjson
import typer

from service.cli.output import standard_error
from service.cli.waiting import Bar, working
from service.errors import FileUnreadable, PatternNameTaken
from streams import Event, EventBatch, KeyForm, key_names

if TYPE_CHECKING:
    from constraints import ParsedConstraints
    from nfa import Pattern
    from streams.readers import ReaderOptions


Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key-path",
        "--key",
        metavar="[TYPE=]PATH",
        help="Path of the correlation key, such as data.customer (default: key). TYPE=PATH: only for events "
        "of TYPE, *=PATH: for all other types. Repeatable.",
    ),
]


class _NoBar:
    def update(self, task: Any, /, *, description: str | None = None, completed: float | None = None) -> None:
        """Do nothing."""


Times: TypeAlias = Literal["event", "file", "line"]
"""The order of the events of a file."""

TimesOption = typer.Option(
    help="Order of events: sorted by time (event), as in the file (file), or as in the file with line numbers as times "
    "(line)."
)


@contextmanager
def progress_bar(what: str) -> Iterator[tuple[Bar, Any]]:
    """Show a bar on standard error until the block ends, or print lines if standard error is not a terminal."""
    if not sys.stderr.isatty():
        with working(what):
            yield _NoBar(), None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress, progress.add_task(what, total=1.0)


def read_text(path: Path) -> str:
    """Read a text file. Raises ``FileUnreadable``, also if the file is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileUnreadable(f"{path} cannot be read: {reason_of(error)}", file=str(path)) from error


def read_json(path: Path) -> Any:
    """Read the value of a JSON file. The path ``-`` means standard input."""
    try:
        return orjson.loads(sys.stdin.read() if path == Path("-") else read_text(path))
    except orjson.JSONDecodeError as error:
        raise FileUnreadable(
            f"{path}: line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}", file=str(path)
        ) from error


def reason_of(error: OSError | UnicodeDecodeError) -> str:
    """Return the reason why a file cannot be read, without the file's name."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def read_pattern_files(paths: list[Path]) -> list[Pattern]:
    """Read patterns from files. Their names must differ. A file ``.json`` contains one pattern in JSON form."""
    from nfa import PatternRefused  # noqa: PLC0415

    by_name: dict[str, Pattern] = {}
    for path in paths:
        try:
            patterns = _patterns_of(path)
        except PatternRefused as refusal:
            refusal.message = f"{path}: {refusal.message}"
            raise
        for pattern in patterns:
            if pattern.name in by_name:
                raise PatternNameTaken(f"{path}: a pattern named {pattern.name} exists already; rename one of them")
            by_name[pattern.name] = pattern
    return list(by_name.values())


def is_pattern(argument: str) -> bool:
    """Return whether an argument is a pattern's text or a pattern file, rather than a registered pattern's name."""
    return _is_text(argument) or Path(argument).is_file()


def read_patterns(argument: str) -> Sequence[Pattern]:
    """Read patterns from a file or a text. Raises ``FileUnreadable`` for any other argument."""
    if not is_pattern(argument):
        raise FileUnreadable(
            f"{argument!r} is neither a file nor a pattern; the text of a pattern begins with PATTERN name EVENT",
            file=argument,
        )
    from nfa import parse_patterns  # noqa: PLC0415

    return parse_patterns(argument) if _is_text(argument) else read_pattern_files([Path(argument)])


def _is_text(argument: str) -> bool:
    return argument.lstrip().upper().startswith("PATTERN ")


def read_constraint_file(path: Path) -> ParsedConstraints:
    """Read constraints from a JSON or YAML file, and print notices on standard error."""
    from constraints import parse_constraints  # noqa: PLC0415

    parsed = parse_constraints(read_text(path))
    for notice in parsed.notices:
        standard_error.notice(notice)
    return parsed


def read_event_file(path: Path, options: ReaderOptions) -> list[Event]:
    """Read the events of a file, with a progress bar."""
    from streams.readers import read_events  # noqa: PLC0415

    with progress_bar(f"reading {path.name}") as (progress, task):
        return read_events(path, _with_notices(path, options), lambda share: progress.update(task, completed=share))


def read_event_batch(path: Path, options: ReaderOptions, read: Collection[str] | None = None) -> EventBatch:
    """Read the events of a file as columns, with a progress bar.

    Only the attributes in ``read`` are read. None means all attributes.
    """
    from streams.readers import read_batch  # noqa: PLC0415

    with progress_bar(f"reading {path.name}") as (progress, task):
        return read_batch(
            path, _with_notices(path, options), lambda share: progress.update(task, completed=share), read
        )


def _with_notices(path: Path, options: ReaderOptions) -> ReaderOptions:
    also_report = options.on_dropped

    def tell(count: int) -> None:
        what = "an event was" if count == 1 else f"{count} events were"
        standard_error.notice(
            f"{path}: {what} dropped, as the id occurred before in the file; --duplicates keep keeps them"
        )
        if also_report is not None:
            also_report(count)

    return replace(options, on_dropped=tell, on_notice=standard_error.notice)


def chosen_key(options: Sequence[str] | None, option: str = "--key") -> KeyForm | None:
    """Return the correlation key that a command's options describe, or None if there are no options.

    The options are a single PATH, or a TYPE=PATH for each event type.
    """
    if not options:
        return None
    if len(options) == 1 and "=" not in options[0]:
        return options[0]
    form = "write one PATH, or TYPE=PATH for each event type, such as Payment=data.ref, with '*=PATH' for other types"
    return dict(pairs_of(options, f"is not TYPE=PATH; {form}", "type", option))


def require_keys(patterns: Sequence[Pattern], key: KeyForm | None) -> None:
    """Check that each pattern's ``WHERE [..]`` names the key by which the events are grouped."""
    from nfa import require_key  # noqa: PLC0415

    for pattern in patterns:
        path = ".".join(pattern.keys[0]) if pattern.keys else ""
        require_key(pattern, () if key is None else key_names(key), f", or use --key data.{path}")


def further_keys(options: Sequence[str] | None, option: str = "--further-key") -> dict[str, KeyForm]:
    """Return the further keys that a command's options describe, by name.

    An option is NAME=PATH, or NAME:TYPE=PATH for one event type.
    """
    keys: dict[str, KeyForm] = {}
    for full_name, path in pairs_of(
        options or (), "is not NAME=PATH, such as customer=data.customer_id", "name", option
    ):
        name, sign, event_type = full_name.partition(":")
        paths = keys.get(name, {} if sign else path)
        if isinstance(paths, str) == bool(sign):
            raise typer.BadParameter(f"{name!r} has one path for all types, or one for each type", param_hint=option)
        keys[name] = paths if isinstance(paths, str) else {**paths, event_type: path}
    return keys


def pairs_of(options: Sequence[str], fault: str, what: str, option: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of each option of the form NAME=PATH.

    Raises an error if an option has another form, or if two options have the same name. In these errors, ``fault``
    describes the form and ``what`` the names.
    """
    names: set[str] = set()
    for text in options:
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            raise typer.BadParameter(f"{text!r} {fault}", param_hint=option)
        if name in names:
            raise typer.BadParameter(f"the {what} {name!r} is given twice", param_hint=option)
        names.add(name)
        yield name, path


def _patterns_of(path: Path) -> tuple[Pattern, ...]:
    from nfa import parse_patterns, pattern_from_json  # noqa: PLC0415

    if path.suffix.lower() != ".json":
        return parse_patterns(read_text(path))
    return (pattern_from_json(read_json(path)),)
