"""Commands in messages exist, whichever operation of the API a message names."""

import itertools
import re

import pytest
import typer

from service.cli.app import as_commands, build_app, commands

KINDS = ("aggregates", "joins", "taps")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(scope="module")
def known():
    """The names of all commands, such as ``patterns list``."""
    root = typer.main.get_command(build_app())
    return {
        " ".join((name, *rest))
        for name, command in vars(root)["commands"].items()
        for rest in ((), *((verb,) for verb in vars(command).get("commands", ())))
    }


def test_operations_become_commands_that_exist(known):
    for method, group, name in itertools.product(METHODS, (*commands(), "ready"), ("", "/x")):
        message = f"see {method} /v1/{group}{name};"
        words = as_commands(message, commands().keys())
        command = re.fullmatch(r"see forestall ([a-z-]+(?: [a-z-]+)?)(?: x| FILE)?;", words)
        assert words == message or (command and command[1] in known), words


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("GET /v1/pipeline shows the backlog", "forestall status shows the backlog"),
        ("GET /v1/ready says when it does", "forestall status says when it does"),
        ("GET /v1/ready was refused (503)", "forestall status was refused (503)"),
        ("GET /v1/pipeline/plan was refused", "GET /v1/pipeline/plan was refused"),
        ("and GET /v1/traces/{stream}/{key} reads one", "and forestall traces show STREAM KEY reads one"),
        ("GET /v1/alerts?key= lists its alerts", "forestall alerts list --key KEY lists its alerts"),
        ("GET /v1/alerts?key=k was refused", "GET /v1/alerts?key=k was refused"),
        ("DELETE /v1/streams/x?dry_run=true was refused", "DELETE /v1/streams/x?dry_run=true was refused"),
        ("follow it (PUT /v1/streams/x-1/workflow)", "follow it (PUT /v1/streams/x-1/workflow)"),
        ("all of it with ?cascade=true", "all of it with --cascade"),
        ("POST /v1/sinks was refused", "POST /v1/sinks was refused"),
        *((f"change it (PUT /v1/{kind}/j)", f"change it (forestall {kind} change FILE)") for kind in KINDS),
    ],
)
def test_advice_of_the_api_names_commands(message, expected):
    assert as_commands(message, commands().keys()) == expected
