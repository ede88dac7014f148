"""Common parts of commands that call the running service: their options, the client, and the output of answers.

A list is printed in columns, one line per item, and a single resource as YAML. With ``--json``, both are printed as the
JSON of the API, a list with one line per item. In text output, control characters are escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import signature
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin

import typer
import yaml
from rich.markup import escape

from service.cli.output import echo_json, echo_table, printable, standard_error
from service.cli.signatures import Options, parameters, with_parameters
from service.client import Client, ClientError, ResourceMissing
from service.settings import load_settings
from service.settings_contexts import current_context
from streams import did_you_mean

Url: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="URL of the API (default: FORESTALL_URL, or the current context).", rich_help_panel="Call"
    ),
]
ApiKeyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="KEY",
        help="API key (default: the variable FORESTALL_API_KEY, which other users of the machine cannot read).",
        rich_help_panel="Call",
    ),
]
IsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON; of a list, one item per line.")]

Command = TypeVar("Command", bound=Callable[..., None])
Columns: TypeAlias = Sequence[tuple[str, str]]
"""The columns of a list: each heading, and the member that is shown below it."""

_PATIENCE_S = 5.0
_OVERLOAD_PATIENCE_S = 1_800.0  # overload ends once the backlog shrinks
_OF_NAMES = frozenset(
    ("streams", "keys", "key", "inputs", "types", "counts", "columns")
)  # objects in which users choose the names of the members
_WRITTEN = frozenset(("data", "template", "schema", "document", "headers", "return"))
_UNKNOWN = {"unknown-stream": "stream", "unknown-pattern": "pattern"}
_NOTHING = "-"
_EMPTY: tuple[Any, ...] = ([], "", {})
_UNBROKEN = 100_000  # terminals wrap lines themselves


class Caller(Client):
    """A client that also prints answers. They are printed as text, or as JSON if the call has ``--json``."""

    is_json: bool = False

    def show(self, document: Mapping[str, Any]) -> None:
        show(document, is_json=self.is_json)

    def say(self, document: Mapping[str, Any], sentence: str) -> None:
        """Print an answer, as a sentence or as JSON."""
        if self.is_json:
            echo_json(document)
        else:
            typer.echo(printable(sentence))

    def show_secret(
        self, document: Mapping[str, Any], member: str, resource_kind: str, detail: str, group: str
    ) -> None:
        """Print a secret that the service shows only once: alone on standard output, or in the JSON of the answer.

        Without JSON, a note on standard error names ``resource_kind``, the id and ``detail``. If an earlier answer with
        the secret was lost, the note names the command ``rotate`` of ``group``, which makes another secret.
        """
        id_, secret = document["id"], document[member]
        if self.is_json:
            echo_json(document)
        elif secret is None:
            standard_error.print(
                f"{resource_kind} {id_} exists, but the answer with its {member} was lost: "
                f"'forestall {group} rotate {id_}' gives it another one"
            )
        else:
            standard_error.print(f"{resource_kind} {id_} {escape(detail)}; its {member} is shown only once:")
            typer.echo(secret)


PatientCaller: TypeAlias = Annotated[Caller, 60.0]
"""A caller that keeps retrying for the time that a restart of the service may take."""


class Commands(typer.Typer):
    """A group of commands that call the running service.

    A command declares its client as the parameter ``client``. On the command line, this parameter is replaced by the
    options ``--url`` and ``--api-key``, and also ``--json`` if the client is a ``Caller``.
    """

    def __init__(self, help: str, **settings: Any) -> None:
        super().__init__(help=help, no_args_is_help=True, **settings)
        self.callback(help=help)(_nothing)  # with a callback, typer keeps the name of a single command

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Command], Command]:
        register = super().command(name, **settings)

        def registered(command: Command) -> Command:
            register(connected(command))
            return command

        return registered


def _nothing() -> None:
    """The callback of a group, which does nothing."""


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``client`` of a command by the client's options."""
    own_parameters = dict(signature(command, eval_str=True).parameters)
    if "client" not in own_parameters:
        return command
    annotation = own_parameters.pop("client").annotation
    kind, patience_s = get_args(annotation) if get_origin(annotation) is Annotated else (annotation, _PATIENCE_S)
    options: Options = {
        "url": (Url, None),
        "api_key": (ApiKeyOption, None),
        **({"is_json": (IsJson, False)} if issubclass(kind, Caller) else {}),
    }

    @wraps(command)
    def called(url: str | None, api_key: str | None, is_json: bool = False, **values: Any) -> None:
        with calling(url, api_key, patience_s) as client:
            client.is_json = is_json
            command(client=client, **values)

    return with_parameters(called, [*own_parameters.values(), *parameters(options)])


@contextmanager
def calling(url: str | None, api_key: str | None, patience_s: float = _PATIENCE_S) -> Iterator[Caller]:
    """Open a client of the running service.

    Address and key default to the settings, then to the current context.
    """
    settings = load_settings()
    secret = settings.api_key.get_secret_value() if settings.api_key else None
    address = url or settings.url
    if address is None and (context := current_context()) is not None:
        address, secret = context.url, context.api_key()  # the key of another service must not be sent
    address = address or f"http://{settings.api_host}:{settings.api_port}"
    with Caller(address, api_key or secret, patience_s=patience_s, overload_patience_s=_OVERLOAD_PATIENCE_S) as client:
        try:
            yield client
        except ResourceMissing as error:
            error.message = _with_suggestion(client, error)
            raise


def _with_suggestion(client: Client, error: ResourceMissing) -> str:
    """Return the message of an error, with the most similar name if a stream or an operator does not exist."""
    kind = _UNKNOWN.get(error.code) or str(error.problem.get("kind"))
    name = error.problem.get("name", error.problem.get(kind))
    if error.code not in (*_UNKNOWN, "unknown-operator") or not isinstance(name, str):
        return error.message
    with suppress(ClientError):
        known = [item["name"] for item in client.get(f"/{kind}s")["items"]]
        return error.message.replace(repr(name), repr(name) + did_you_mean(name, known), 1)
    return error.message


def without_none(**options: Any) -> dict[str, Any]:
    """Return the options whose value is not None."""
    return {name: value for name, value in options.items() if value is not None}


def show(document: Mapping[str, Any], *, is_json: bool) -> None:
    """Print a resource, as YAML or as JSON."""
    if is_json:
        echo_json(document)
        return
    text = yaml.dump(_for_people(document), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=_UNBROKEN)
    typer.echo("\n".join(printable(line) for line in text.splitlines()))


def show_list(items: Iterable[Mapping[str, Any]], columns: Columns, *, is_json: bool) -> None:
    """Print a list, in columns or as JSON with one item per line."""
    if is_json:
        for item in items:
            echo_json(item)
        return
    rows = ([_cell(item.get(member)) for _, member in columns] for item in items)
    echo_table([heading for heading, _ in columns], rows)


class _Plain(yaml.SafeDumper):
    """A YAML dumper that omits quotes, because only people read the output; programs read ``--json``."""

    def represent_scalar(self, tag: str, value: Any, style: str | None = None) -> yaml.ScalarNode:
        style = "|" if "\n" in str(value) else style  # other styles have an empty line between two lines
        return super().represent_scalar("tag:yaml.org,2002:str", value, style)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Plain.yaml_implicit_resolvers = {}


def _for_people(document: Mapping[str, Any], *, are_names: bool = False) -> dict[str, Any]:
    """Convert a document for users: replace ``_`` in member names by spaces, and leave out empty members.

    Names and texts that users wrote stay unchanged. ``are_names`` means that users wrote the names in ``document``.
    """
    return {
        name if are_names else name.replace("_", " "): _for_people(value, are_names=not are_names and name in _OF_NAMES)
        if isinstance(value, Mapping) and (are_names or name not in _WRITTEN)
        else value
        for name, value in document.items()
        if value is not None and value not in _EMPTY
    }


def _cell(value: Any) -> str:
    if value is None or value in _EMPTY:
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(printable(str(element)) for element in value)
    return printable(" ".join(str(value).split()))
