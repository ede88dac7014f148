"""The application ``forestall``: composes all commands, and ends the process after an error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from copy import copy
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from service.cli.coercion import PlainGroup, make_plain
from service.client.errors import ServiceOverloaded, ServiceUnavailable, ServiceUnreachable
from service.errors import StoreUnavailable
from streams import ForestallError

if TYPE_CHECKING:
    from shards import DocumentKind

_OF_OPERATORS = "Write patterns, in the service"
_PANELS: Mapping[str, Mapping[str, str]] = {
    "Run": {
        "serve": "Run the whole service until it is interrupted.",
        "console": "Serve the web console of the running service until it is interrupted.",
        "status": (
            "Show whether the service is ready, its backlog, and the state of its streams. Exit status 1: not ready."
        ),
        "pipeline": "The pipeline of the running service.",
        "demo": "Run generated orders through the whole service. Exit status 1: the alerts are not the expected ones.",
        "doctor": "Check that everything the service needs is in place: Java, packages, settings, Redis, ports.",
        "warm-up": "Compile all kernels once for this user and machine, so that later commands start fast.",
        "settings": "Print every setting with its current value and source; secrets are hidden.",
    },
    "Send events": {
        "replay": (
            "Send the events of files to the running service, in the order of their times. Exit status 1: some "
            "were refused."
        ),
        "feed": "Append events to a stream from a folder (feed folder) or from Kafka topics (feed kafka).",
    },
    "Look": {
        "events": "Events of streams of the running service.",
        "alerts": "Alerts of the running service.",
        "incidents": "Incidents of the running service.",
        "traces": "Transactions of the running service.",
        "endings": "Early terminations reported by the running service.",
        "deviations": "Deviations reported by the running service: transactions that break their constraints.",
        "derived-events": "Matches that became events of derived streams in the running service.",
        "dead-letters": "Dead letters of the running service.",
        "results": "Results of any kind of the running service.",
    },
    "Write patterns, without a service": {
        "check": (
            "Check patterns: can they match, and which events terminate them early? Exit status 1: one can never match."
        ),
        "match": "Match patterns in an event file, without Spark, Redis or HTTP.",
        "backtest": "Match patterns in past events, and compare the results of two versions.",
        "generate": "Generate events of interleaved transactions: the order-fulfilment workload, or a workflow.",
        "discover": "Discover the constraints that past transactions keep.",
        "conformance": "Compare past transactions with a model. Exit status 1: a transaction deviates from the model.",
    },
    _OF_OPERATORS: {
        "constraints": (
            "Constraints of a model file ('forestall constraints MODEL') or of the streams of the running service."
        ),
        "tables": "Reference tables of the running service.",
        "calendars": "Calendars of the running service.",
        "workflows": "Workflows of the running service.",
        "backtests": "Backtests of the running service.",
    },
    "Projects": {
        "test": "Run the tests of a project: documents of the kind test. Exit status 1: one fails.",
        "run": "Run a project over event files, without Spark, Redis or HTTP.",
        "apply": "Make the running service match a project, a folder of documents.",
        "export": "Export the resources of the running service as a project.",
    },
    "Administer": {
        "streams": "Streams of the running service.",
        "event-types": "Schemas of event types of the running service.",
        "webhooks": "Webhooks of the running service.",
        "sinks": "Sinks of the running service other than webhooks.",
        "keys": "API keys of the running service. All commands need a key with the scope admin, in FORESTALL_API_KEY.",
        "audit": "Changes that callers of the running service requested. Needs a key with the scope admin.",
        "api": "Call the API of the running service and print its answer.",
        "context": "Named services that commands call.",
        "backup": "Back up a stopped service: Redis, checkpoint and saved states, in one file.",
        "restore": "Restore a backup; the whole file is checked before anything is changed.",
        "reshard": "Increase the number of shards of a stopped service.",
    },
}
"""The summaries of the commands, by panel of the overall help. ``commands`` adds the commands of operator kinds."""

_FIXED = {name: line for panel in _PANELS.values() for name, line in panel.items()}

_MODULES = {
    "calendars": "tables",
    "export": "apply",
    "warm-up": "doctor",
    **dict.fromkeys(("restore", "reshard"), "backup"),
    **dict.fromkeys(("endings", "deviations", "derived-events", "audit"), "results"),
}
"""The module of each command whose module has another name."""

# Former verbs and their replacements. The former verbs remain as hidden commands for one release.
_RENAMED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "streams": {"rm": "delete"},
        "event-types": {"put": "add"},
        "workflows": {"put": "add"},
        "calendars": {"put": "add"},
        "constraints": {"upload": "add"},
        "keys": {"create": "add", "revoke": "delete"},
        "backtests": {"ask": "add"},
    }
)

_REFUSED, _AWAY = 2, 3
_COMPLETING = "_FORESTALL_COMPLETE"
_TYPED = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")  # the variable of bash, and the variable of other shells


@cache
def commands() -> Mapping[str, str]:
    """Return the one-line summary of every command, by name. The overall help lists these summaries."""
    return _FIXED | {plural: f"{plural.capitalize()} of the running service." for plural in _kinds()}


@cache
def _kinds() -> Mapping[str, DocumentKind]:
    """Return the kinds of operators by command group; the import loads Arrow, which most calls do not need."""
    from shards import DOCUMENT_KINDS  # noqa: PLC0415

    return {kind.plural: kind for kind in DOCUMENT_KINDS}


def build_app(names: Iterable[str] | None = None) -> typer.Typer:
    """Build the command line with the named commands, or with all commands.

    Only the modules of these commands are imported, so that ``match`` does not wait for Spark.
    """
    app = _bare()
    for name in commands() if names is None else names:
        kind = None if name in _FIXED else _kinds()[name]
        if kind is not None and not kind.has_own_resource:
            make = import_module("service.cli.operators").operator_commands
            command = make(kind.name, name, is_asked=kind.is_asked, is_plotted=kind.is_plotted)
        else:
            member = name.replace("-", "_")
            command = getattr(import_module(f"service.cli.{_MODULES.get(name, member)}"), member)
        if isinstance(command, typer.Typer):
            _rename(command, _RENAMED.get(name, {}))
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    make_plain(app)
    _exemplify(app, "", orjson.loads(files("service.cli").joinpath("examples.json").read_bytes()))
    return app


def _exemplify(app: typer.Typer, above: str, examples: Mapping[str, str]) -> None:
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        if example := examples.get(above + name):
            command.epilog = f"Example: forestall {example}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _exemplify(group.typer_instance, f"{above}{group.name} ", examples)


def _rename(group: typer.Typer, renamed: Mapping[str, str]) -> None:
    for command in list(group.registered_commands):
        former = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        if former in renamed and not command.hidden:  # an earlier call may have renamed the group
            command.name = renamed[former]
            hidden = copy(command)
            hidden.name, hidden.hidden = former, True
            group.registered_commands.append(hidden)


def called_app() -> typer.Typer:
    """Build the application with only the command that this process was started with."""
    # house: allow environment: shells pass the text to complete in variables, which are no settings
    return _app_for(sys.argv[1:], os.environ)


def run(app: typer.Typer) -> None:
    """Run the command of this process, and print an error once, on standard error.

    Errors are text. If the call asks for JSON, every error is one line of JSON (``_refusal_document``), including wrong
    usage. The exit status is 3 if the service or its Redis does not answer or is overloaded, so that the same call may
    succeed later. It is 2 for any other error.
    """
    is_json = _wants_json(sys.argv[1:])
    try:
        arguments = sys.argv[1:] or ["--help"]
        status = app(arguments, prog_name="forestall", standalone_mode=not is_json)
    except ForestallError as error:
        _tell_refusal(error, is_json=is_json)
        is_away = isinstance(error, (ServiceUnreachable, ServiceUnavailable, ServiceOverloaded, StoreUnavailable))
        sys.exit(_AWAY if is_away else _REFUSED)
    except typer.exceptions.TyperException as error:
        _tell_usage(error)
        sys.exit(_REFUSED)
    sys.exit(status)


def _app_for(arguments: Sequence[str], environment: Mapping[str, str]) -> typer.Typer:
    """Build the application for a call. If the called or completed command is known, only this command is included."""
    if _COMPLETING in environment:
        typed = next((environment[name].split() for name in _TYPED if name in environment), [])[1:2]
        return build_app(typed) if typed and typed[0] in commands() else listing()
    if arguments == ["--version"]:
        return build_app(())
    if arguments and (arguments[0] in _FIXED or arguments[0] in commands()):
        return build_app(arguments[:1])
    return listing() if commands().keys().isdisjoint(arguments) else build_app()


def listing() -> typer.Typer:
    """Return an application that lists every command with its summary, without importing any command."""
    app = _bare()
    for panel, names in _PANELS.items():
        for name in (*_kinds(), *names) if panel == _OF_OPERATORS else names:
            app.command(name, help=commands()[name], rich_help_panel=panel)(_placeholder)
    return app


def _bare() -> typer.Typer:
    app = typer.Typer(
        cls=PlainGroup,
        help="Complex event processing that knows the workflow behind the events.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_several)
    return app


def _placeholder() -> None:
    """A placeholder for commands that are only listed."""


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version  # noqa: PLC0415

        typer.echo(f"forestall {version('forestall')}")
        raise typer.Exit


def _several(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Complex event processing that knows the workflow behind the events."""


def _wants_json(arguments: Sequence[str]) -> bool:
    return not {"--json", "--output=json"}.isdisjoint(arguments) or ("--output", "json") in pairwise(arguments)


def _refusal_document(error: ForestallError) -> dict[str, Any]:
    """Represent an error as plain JSON.

    ``error`` is the error's code, or the problem's code if the service refused the call. ``message`` is the whole text.
    ``problems`` lists the problems of a model, each with ``element`` and ``message``. ``details`` has further
    attributes, such as ``line``.
    """
    details = dict(error.details)
    problems = details.pop("problems", [])
    return {"error": error.code, "message": error.message, "problems": problems, "details": details}


def _tell_refusal(error: ForestallError, *, is_json: bool) -> None:
    if is_json:
        typer.echo(orjson.dumps(_refusal_document(error), default=str).decode(), err=True)
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415

    Console(stderr=True, soft_wrap=True, highlight=False).print(
        f"[red]error[/red]: {escape(as_commands(error.message, commands().keys()) + _advice(error))}"
    )


def _advice(error: ForestallError) -> str:
    is_nobody_there = isinstance(error, ServiceUnreachable) and not error.details["is_listening"]
    return "; is the service running? 'forestall serve' starts one on this machine" if is_nobody_there else ""


def _tell_usage(error: Any) -> None:
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    document: dict[str, Any] = {"error": "usage", "message": message, "problems": [], "details": {}}
    typer.echo(orjson.dumps(document).decode(), err=True)


_OPERATION = re.compile(
    r"\b(GET|POST|PUT|PATCH|DELETE) (?:https?://[^/\s]+)?/v1/([a-z-]++)(?:/([^\s/;,)?]++))?+(?![\w/{?])"
)
_OF_ALL = {"GET": "list", "POST": "add"}
_OF_ONE = {"GET": "show", "PUT": "add", "PATCH": "change", "DELETE": "delete"}
_REPLACED = frozenset(("patterns", "joins", "aggregates", "taps"))  # changed by 'change'
_BY_ROW = "tables"  # 'change' requires the key of a row
_WHOLE = {
    "GET /v1/pipeline": "forestall status",
    "GET /v1/ready": "forestall status",
    "GET /v1/alerts/live": "forestall alerts tail",
    "GET /v1/results/live": "forestall results tail",
    "GET /v1/traces/{stream}/{key}": "forestall traces show STREAM KEY",
    "GET /v1/alerts?key=": "forestall alerts list --key KEY",
    "with ?cascade=true": "with --cascade",
    'use the log: {"log": true}': "leave --path out to use the log",
    "send an API key as 'Authorization: Bearer <key>' or as 'X-API-Key: <key>'": (
        "give an API key with --api-key, in FORESTALL_API_KEY, or with a context ('forestall context add')"
    ),
}
"""What messages say to callers of the API, and what the command line says instead.

Most are operations that have no group of their own, or that messages name with parameters.
"""

_STEP = re.compile(r"\bPOST /v1/([a-z-]+)/([^\s/;,)?]+)/(activate|pause|resume|retire)(?![\w/{?])")
_UNFOLLOW = re.compile(r"\bDELETE /v1/streams/([^\s/;,)?]+)/workflow(?![\w/{?])")
_IN_WHOLE = re.compile(rf"({'|'.join(map(re.escape, _WHOLE))})(?![\w/{{?])")


def as_commands(message: str, groups: Set[str]) -> str:
    """Replace API operations in a message, such as ``DELETE /v1/joins/j``, by the equivalent commands.

    An operation without an equivalent command in the command groups ``groups`` is left unchanged.
    """

    def command(operation: re.Match[str]) -> str:
        method, group, name = operation.groups()
        verb = (_OF_ALL if name is None else _OF_ONE).get(method)
        if method == "PUT" and group in _REPLACED:
            verb = "change"
        if group not in groups or verb not in _verbs(group) or (verb == "change" and group == _BY_ROW):
            return operation[0]
        if verb == "change" and group in _kinds() and not _kinds()[group].has_own_resource:
            name = "FILE"  # the document contains the name
        return f"forestall {group} {verb}{'' if name is None else f' {name}'}"

    def step(operation: re.Match[str]) -> str:
        group, name, verb = operation.groups()
        return f"forestall {group} {verb} {name}" if group in groups and verb in _verbs(group) else operation[0]

    message = _UNFOLLOW.sub(r"forestall workflows unfollow \1", _STEP.sub(step, message))
    return _OPERATION.sub(command, _IN_WHOLE.sub(lambda operation: _WHOLE[operation[0]], message))


@cache
def _verbs(group: str) -> Set[str]:
    groups = [registered.typer_instance for registered in build_app([group]).registered_groups]
    return {command.name or "" for app in groups if app is not None for command in app.registered_commands}
