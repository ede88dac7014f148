"""The options of ``forestall backtest``, called as a user calls it."""

import subprocess
import sys
from inspect import signature

import orjson
import pytest
import typer

from service.cli.backtest import backtest
from service.cli.match import match
from streams.readers import Columns


@pytest.mark.spark
@pytest.mark.slow
def test_a_backtest_finds_what_match_finds_and_compares(call, files):
    (files / "events.jsonl").rename(files / "one.jsonl")
    asked = ["--events", "one.jsonl", "--constraints", "rules.yaml", "--cores", "1"]
    words = ("--pattern", "expensive.pattern", "--against", "any.pattern", "--compare-pruning", "--output", "rows")
    command = [sys.executable, "-c", "from service.cli import main; main()", "backtest", *words, *asked, "--json"]
    done = subprocess.run(command, capture_output=True, cwd=files, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()  # a process of its own: it ends the session of Spark
    found = orjson.loads(done.stdout)
    _, out, _ = call("match", "--pattern", "expensive.pattern", *asked[:4], "--output", "json")
    matches = orjson.loads(out)["matches"]
    assert [(alert["key"], alert["bindings"]) for alert in found["alerts"]] == [
        (match["key"], match["bindings"]) for match in matches
    ]
    against, pruning = found["comparisons"]
    assert (against["with"], against["added"], against["lost"], against["same"]) == ("against", 0, 0, 1)
    assert pruning["with"] == "no-prune"
    assert orjson.loads((files / "rows" / "summary.json").read_bytes())["events"] == 5
    lines = [line for file in (files / "rows").glob("alert-*") for line in file.read_bytes().splitlines()]
    assert [orjson.loads(line)["key"] for line in lines] == ["t1"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--events", "none"], "no such file or folder"),
        (["--events", "events.jsonl", "--compare-pruning"], "needs constraints"),
        (["--events", "events.jsonl", "--output", "."], "is not empty"),
        (["--events", "events.jsonl", "--against", "none.pattern"], "cannot be read"),
        (["--events", "events.jsonl", "--map", "x"], "needs a model"),
        (["--events", "events.jsonl", "--cores", "0"], "cores"),
    ],
)
def test_bad_calls_are_refused_before_spark_starts(call, files, monkeypatch, more, words):
    monkeypatch.setattr("service.cli.backtest.run_job", None)
    status, out, err = call("backtest", "--pattern", "expensive.pattern", *more)
    assert (status, out) == (2, "")
    assert words in err


def test_the_options_are_those_of_match():
    forms = {"output", "outputs"}  # of the result
    others = {"further_key", "duplicates"}  # a history is read in parts
    assert set(signature(match).parameters) - forms - others <= set(signature(backtest).parameters)


def test_columns_of_strangers_are_read_as_by_match(call, files, monkeypatch):
    seen = []

    def noted(histories, *_):
        seen.extend(one.options for one in histories.values())
        raise typer.Exit(0)

    monkeypatch.setattr("service.cli.backtest.run_job", noted)
    status, _, err = call(
        "backtest", "--pattern", "expensive.pattern", "--events", "events.jsonl", "--type", "what", "--time", "at",
        "--id", "n", "--attributes", "a,b", "--assume-zone", "Europe/Berlin", "--time-unit", "ms",
    )  # fmt: skip
    assert status == 0, err
    (options,) = seen
    assert options.columns == Columns(id="n", type="what", time="at", attributes=("a", "b"))
    clock = options.clock
    assert (clock.zone, clock.unit, options.duplicates) == ("Europe/Berlin", "ms", "keep")
