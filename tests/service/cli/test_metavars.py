"""What the help of every command shows as the value of an option."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import typer
from rich.text import Text
from typer.core import TyperOption

from service.cli.app import build_app, commands

CHOICES = "|"


def options_of(command, name: str):
    """Each option with its command."""
    for param in command.params:
        if isinstance(param, TyperOption):
            yield name, command, param
    for sub, child in getattr(command, "commands", {}).items():
        yield from options_of(child, f"{name} {sub}")


@pytest.mark.parametrize("name", commands())
def test_options_show_what_their_value_means_and_no_type_of_python(name: str) -> None:
    command = typer.main.get_command(build_app([name]))
    shown = {
        (path, option.opts[0]): option.display_type_rich(typer.Context(found)) or ""
        for path, found, option in options_of(vars(command)["commands"][name], name)
    }
    assert shown
    typed = {where: text for where, text in shown.items() if text.startswith("<") and CHOICES not in text}
    assert typed == {}


@pytest.mark.parametrize("name", commands())
def test_nothing_in_a_help_text_is_taken_for_markup(name: str) -> None:
    """``[customer]`` would vanish; ``\\[customer]`` is shown."""
    command = typer.main.get_command(build_app([name]))
    for path, option in (
        (path, option) for path, _, option in options_of(vars(command)["commands"][name], name) if option.help
    ):
        text = option.help.replace("\\[", "[")
        assert Text.from_markup(option.help).plain == text, (path, option.opts[0])


@pytest.mark.parametrize("name", commands())
def test_an_option_that_takes_one_value_is_refused_if_it_is_given_twice(name: str) -> None:
    command = vars(typer.main.get_command(build_app([name])))["commands"][name]
    for _, found, option in options_of(command, name):
        words = [option.opts[0]] if option.is_flag else [option.opts[0], "1"]
        once = option.multiple or (option.is_flag and not option.secondary_opts)
        refusal = nullcontext() if once else pytest.raises(typer.BadParameter, match="given twice")
        with refusal:
            found.parse_args(typer.Context(found, resilient_parsing=True), [*words, *words])


def test_the_last_of_two_values_does_not_win(call) -> None:
    status, _, err = call("match", "--pattern", "p", "--events", "a.csv", "--events", "b.csv")
    assert status == 2
    assert "'--events': given twice; it takes one value" in " ".join(err.split())


def test_a_flag_shows_nothing_and_a_path_a_file(call) -> None:
    _, out, _ = call("match", "--help")
    words = out.split()
    assert {words[words.index(option) + 1] for option in ("--events", "--pattern", "--map")} == {"FILE"}
    assert "<bool>" not in out
