"""``forestall discover``: the constraints that past traces keep, as a document for upload."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
import yaml
from rich.console import Console

from service.cli.columns import Classifier
from service.cli.inputs import Key, Times, TimesOption, chosen_key, progress_bar
from service.cli.output import counted, echo_json, standard_error
from service.cli.past import EndEvents, read_log
from workflows import MinedConstraints, MiningSettings, kind_of, mine

DocumentForm: TypeAlias = Literal["yaml", "json", "text"]
"""Form of the discovered constraints."""


MinimumSupport: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Minimum number of transactions that activate a constraint; below 1: share of all transactions. "
        "Default: 1 % of all, but at least 5.",
    ),
]


def discover(
    log: Annotated[Path, typer.Argument(help="Past events: .jsonl, .csv or .xes, each also .gz.")],
    min_support: MinimumSupport = None,
    min_confidence: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Minimum share of these transactions that keep the constraint."),
    ] = 1.0,
    min_expected: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="List exclusions and requirements only if chance would violate them at least this often; 0: all.",
        ),
    ] = 5.0,
    rules: Annotated[bool, typer.Option("--rules", help="Also discover DECLARE rules, such as response.")] = False,
    is_complete: Annotated[
        bool, typer.Option("--all", help="Also list constraints that follow from the others.")
    ] = False,
    output: Annotated[DocumentForm, typer.Option(help="Output format.")] = "yaml",
    is_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    key: Key = None,
    times: Annotated[Times, TimesOption] = "event",
    lifecycle: Annotated[bool, typer.Option(help="XES: event types are name+transition (Pay+complete).")] = False,
    classifier: Classifier = None,
    end: EndEvents = None,
) -> None:
    """Discover the constraints that past transactions keep."""
    settings = MiningSettings(
        min_support=min_support, min_confidence=min_confidence, min_expected=min_expected, has_rules=rules
    )
    past = read_log(
        log, key=chosen_key(key), times=times, lifecycle=lifecycle, classifier=classifier, end_events=end or ()
    )
    with progress_bar(f"discovering constraints in {counted(len(past.traces), 'transaction', form=',')}"):
        discovery = mine(past.traces, settings, past.summary)
    for mined in discovery.withdrawn:
        standard_error.notice(f"{mined.part} is left out: no trace can keep it and the rest")
    document = discovery.to_document(is_complete=is_complete)
    if is_json or output == "json":
        echo_json(document)
    elif output == "text":
        _print(discovery, is_complete=is_complete)
    else:
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
        typer.echo(text, nl=False)


def _print(discovery: MinedConstraints, *, is_complete: bool) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    listed = discovery.all if is_complete else discovery.useful
    for kind, group in groupby(
        sorted(listed, key=lambda mined: kind_of(mined.part)), lambda mined: kind_of(mined.part)
    ):
        console.print(f"{kind}:")
        for mined in group:
            broken = f", {counted(mined.violations, 'breaks', 'break')} it" if mined.violations else ""
            console.print(f"  {mined.part}  {mined.confidence:.2%} of {counted(mined.support, 'trace')}{broken}")
    least = discovery.settings.least_traces(discovery.log.traces)
    traces = "trace" if least == 1 else "traces"
    console.print(
        f"\n{counted(discovery.log.traces, 'trace')}, {counted(discovery.log.events, 'event')}: "
        f"{counted(len(discovery.useful), 'constraint says', 'constraints say')} all of {len(discovery.all)} "
        f"with at least {least:g} {traces} and confidence {discovery.settings.min_confidence:g}"
    )
