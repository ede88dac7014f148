"""Benchmarks whose commands ``benchmarks/RESULTS.md`` shows, on little input: they run, and find the same both ways."""

import re
import sys

from benchmarks import derived_streams, join_closing


def printed(benchmark, monkeypatch, capsys, *options):
    monkeypatch.setattr(sys, "argv", ["benchmark", *options])
    benchmark.main()
    return capsys.readouterr().out


def test_joins_that_are_closed_by_the_workflow_find_what_others_find(monkeypatch, capsys):
    said = printed(join_closing, monkeypatch, capsys, "--orders=120")
    found = re.match(r"([\d,]+) events, (\d+) pairs, (\d+) without a partner\n", said)
    assert found is not None
    assert all(int(number.replace(",", "")) > 10 for number in found.groups())
    means = {name: int(mean) for name, mean in re.findall(r"\| `(\w+)` \| (\d+) \|", said)}
    assert 0 <= means["workflow"] <= means["end"]


def test_a_chain_gives_the_rows_of_both_patterns_however_entries_are_cut(monkeypatch, capsys):
    said = printed(derived_streams, monkeypatch, capsys, "--quick")
    rows = re.findall(r"^ *([\d,]+) events per entry  ([a-z ]+?) +[\d.]+ s +([\d,]+) rows$", said, re.MULTILINE)
    assert {(size, name) for size, name, _ in rows} == {
        (size, name) for size in ("1000", "20") for name in ("chain", "first alone", "second alone")
    }
    assert all(int(count.replace(",", "")) > 0 for *_, count in rows)
    assert len(re.findall(r"chain to both alone: \d+\.\d\d", said)) == 2
