"""The options of ``forestall backtest``, called as a user calls it."""

import subprocess
import sys
from inspect import signature

import orjson
import pytest
import typer

from service.cli.backtest import backtest
from service.cli.match import match
from shards import RoundPlan
from streams import AutoLateness
from streams.readers import Columns, ReaderOptions

LARGE = """
import pipeline.runs.in_process
from service.cli import main

pipeline.runs.in_process.SMALL_BYTES = 0
main()
"""


IN_SPARK = [pytest.mark.spark, pytest.mark.slow, pytest.mark.deep]  # each day by tests/service/backtests/test_run.py


@pytest.fixture(params=["small", pytest.param("large", marks=IN_SPARK)])
def backtested(request, call, files):
    """Runs a backtest, in this process or in Spark, and returns its JSON."""

    def run(*arguments):
        if request.param == "small":
            status, out, err = call("backtest", *arguments, "--json")
            assert status == 0, err
            return orjson.loads(out)
        command = [sys.executable, "-c", LARGE, "backtest", *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, cwd=files, timeout=300, check=False)
        assert done.returncode == 0, done.stderr.decode()  # a process of its own: it ends the session of Spark
        return orjson.loads(done.stdout)

    return run


def test_a_backtest_finds_what_match_finds_and_compares(backtested, call, files):
    (files / "events.jsonl").rename(files / "one.jsonl")
    asked = ["--events", "one.jsonl", "--constraints", "rules.yaml", "--cores", "1"]
    words = ("--pattern", "expensive.pattern", "--against", "any.pattern", "--compare-pruning", "--output", "rows")
    found = backtested(*words, *asked)
    _, out, _ = call("match", "--pattern", "expensive.pattern", *asked[:4], "--output", "json")
    matches = orjson.loads(out)["matches"]
    assert [(alert["key"], alert["bindings"]) for alert in found["alerts"]] == [
        (match["key"], match["bindings"]) for match in matches
    ]
    against, pruning = found["comparisons"]
    assert (against["with"], against["added"], against["lost"], against["same"]) == ("against", 0, 0, 1)
    assert pruning["with"] == "no_prune"
    assert orjson.loads((files / "rows" / "summary.json").read_bytes())["events"] == 5
    lines = [line for file in (files / "rows").glob("alert-*") for line in file.read_bytes().splitlines()]
    assert [orjson.loads(line)["key"] for line in lines] == ["t1"]


def test_a_small_history_is_matched_without_spark(files):
    program = "import sys\nfrom service.cli import main\ntry:\n  main()\nfinally:\n  print('pyspark' in sys.modules)"
    command = [sys.executable, "-c", program, "backtest"]
    asked = ["--pattern", "expensive.pattern", "--events", "events.jsonl", "--json"]
    done = subprocess.run([*command, *asked], capture_output=True, cwd=files, timeout=300, check=False)
    found, has_spark = done.stdout.splitlines()
    assert (len(orjson.loads(found)["alerts"]), has_spark) == (1, b"False"), done.stderr.decode()


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
def test_bad_calls_are_refused_before_the_run(call, files, monkeypatch, more, words):
    monkeypatch.setattr("service.cli.backtest.run_job", None)
    status, out, err = call("backtest", "--pattern", "expensive.pattern", *more)
    assert (status, out) == (2, "")
    assert words in err


def test_the_options_are_those_of_match():
    forms = {"output", "outputs"}  # of the result
    others = {"further_key", "duplicates", "sql", "table"}  # a history is read in parts; a query is over one table
    assert set(signature(match).parameters) - forms - others <= set(signature(backtest).parameters)


def test_columns_of_strangers_are_read_as_by_match(call, files, monkeypatch):
    seen: list[ReaderOptions] = []

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


def test_a_measured_lateness_is_that_of_the_stream_of_the_plan(call, files, monkeypatch):
    plans: list[RoundPlan] = []

    def noted(_, plan, *rest):
        plans.append(plan)
        raise typer.Exit(0)

    monkeypatch.setattr("service.cli.backtest.run_job", noted)
    words = ("backtest", "--pattern", "expensive.pattern", "--events", "events.jsonl")
    assert call(*words, "--lateness", "auto:at_most=30")[0] == 0
    assert call(*words, "--lateness", "2.5")[0] == 0
    measured, fixed = (plan.variants[0].declarations["backtest"].lateness for plan in plans)
    assert (measured, fixed) == (AutoLateness(at_most=30), 2.5)
    status, _, err = call(*words, "--lateness", "soon")
    assert (status, "lateness is 'soon'; write 5 min, seconds, none, or auto" in err) == (2, True), err


RULES = """
{kind: stream, name: orders}
---
{kind: stream, name: payments}
---
kind: join
name: paid
inputs: [{stream: orders, as: o, window: WINDOW}, {stream: payments, as: p, key: data.order, window: 5 s}]
return: {order: id(o), payment: id(p)}
---
{kind: pattern, name: late, stream: orders, text: 'PATTERN late EVENT SEQ(O NAME, WITHIN 3 s NOT P)'}
"""


def test_two_projects_are_compared_by_the_identity_of_each_kind_of_result(call, tmp_path):
    for name, window, alias in (("new", "2 s", "a"), ("old", "5 s", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.yaml").write_text(RULES.replace("WINDOW", window).replace("NAME", alias))
    for stream, type_, step in (("orders", "O", 0), ("payments", "P", 3)):
        lines = [
            {"id": f"{stream}{n}", "type": type_, "time": f"2026-01-01T00:00:{10 * n + step:02}Z", "key": f"k{n}"}
            | {"data": {"order": f"k{n}"}}
            for n in range(4)
        ]
        (tmp_path / f"{stream}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    files = [word for name in ("orders", "payments") for word in ("--events", f"{name}={tmp_path / name}.jsonl")]
    words = ("backtest", "--project", str(tmp_path / "new"), "--against", str(tmp_path / "old"), *files)
    status, out, err = call(*words, "--json")
    assert status == 0, err
    found = orjson.loads(out)
    assert found["stats"].pop("notices").keys() == {"late", "paid"}
    assert found["stats"] == {"events": 8, "rounds": 2}
    assert found["added"] == {"against": []}
    assert [one["data"]["order"] for one in found["lost"]["against"]] == [f"orders{n}" for n in range(4)]
    assert len(found["alerts"]) == 4, "alerts with another alias are the same"
    status, out, _ = call(*words)
    assert "compared with against:\n- paid  k0  paid at 2026-01-01T00:00:03.000000Z" in out


def test_a_backtest_of_a_project_may_be_of_the_beginning_of_its_transactions(call, tmp_path):
    (tmp_path / "rules").mkdir()
    text = "PATTERN late EVENT SEQ(O a, WITHIN 3 s NOT P)"
    (tmp_path / "rules" / "rules.yaml").write_text(
        f"{{kind: stream, name: s}}\n---\n{{kind: pattern, name: late, stream: s, text: '{text}'}}"
    )
    lines = [{"id": f"e{n}", "type": "O", "time": f"2026-01-01T00:00:{n:02}Z", "key": f"k{n}"} for n in range(8)]
    (tmp_path / "s.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    asked = (str(tmp_path / "rules"), "--events", f"s={tmp_path / 's.jsonl'}")
    for more, alerts in (((), 8), (("--open",), 5)):
        status, out, err = call("backtest", "--project", *asked, *more, "--json")
        assert status == 0, err
        _, ran, _ = call("run", *asked, *more, "--output", "json")
        found = [one["key"] for one in orjson.loads(out)["alerts"]]
        assert sorted(found) == sorted(one["key"] for one in orjson.loads(ran)["alerts"])
        assert len(found) == alerts


def test_a_backtest_says_how_many_results_it_does_not_list(call, files):
    asked = ("backtest", "--pattern", "any.pattern", "--against", "expensive.pattern", "--events", "events.jsonl")
    for limit, number in ((0, 2), (1, 1), (2, 0)):
        status, out, err = call(*asked, "--limit", str(limit))
        assert status == 0, err
        assert out.count("; --limit lists more") == number
        assert (f"the first {limit} of 2 alerts;" in out) == (limit < 2)
        assert ("the first 0 of 1 added results;" in out) == (limit == 0)
