"""A peer that cannot be set up is reported with the reason, a process that fails with the end of its output."""

import sys

import pytest

from benchmarks.peers import environments
from benchmarks.peers.__main__ import carry_out, chosen
from benchmarks.peers.cases import CASES
from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.environments import PEERS, Peer, Unavailable, is_set_up, python_for, set_up, told
from benchmarks.peers.launching import Bench, Launch, bobo_module, java_queries, siddhi_app
from benchmarks.peers.planning import plan
from benchmarks.peers.processes import finish, memory_of, pin_words
from benchmarks.peers.results import kept_in
from benchmarks.peers.running import Runner


def case_of(name):
    return next(case for case in CASES if case.name == name)


def test_a_python_that_is_not_there_is_the_reason(tmp_path):
    with pytest.raises(Unavailable, match=r"no Python 9\.9 on PATH"):
        set_up(Peer(name="core", package="pycer", python="9.9"), tmp_path)
    assert not is_set_up(PEERS["core"], tmp_path)


def test_a_compiler_that_is_not_there_is_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match="no javac"):
        set_up(PEERS["flink"], tmp_path)


def test_an_installation_that_fails_is_the_reason(tmp_path, monkeypatch):
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "bobo.txt").write_text("bobocep @ file:///nowhere/at/all.whl\n")
    monkeypatch.setattr(environments, "HERE", tmp_path)
    with pytest.raises(Unavailable, match=r"(?i)error"):
        set_up(PEERS["bobo"], tmp_path / "peers")
    assert not is_set_up(PEERS["bobo"], tmp_path / "peers")


def test_this_python_will_do_where_any_does():
    assert str(python_for(None)) == sys.executable
    assert "3" in told(python_for(None), "-c", "print(3)")


def test_runs_of_a_peer_that_is_missing_are_recorded_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    runs = [run for run in plan(CASES, chosen("siddhi"), events=100, names=["W next"]) if run.system.peer]
    bench, kept = Bench(CASES, tmp_path / "peers"), tmp_path / "runs.jsonl"
    carry_out(runs, bench, Runner(bench, tmp_path, pins=False), kept, 60)
    assert {(record.system, record.status) for record in kept_in(kept)} == {("siddhi", "unavailable")}
    assert all("no javac" in record.reason for record in kept_in(kept))


def test_when_the_time_is_over_nothing_more_is_run(tmp_path):
    bench, kept = Bench(CASES, tmp_path / "peers"), tmp_path / "runs.jsonl"
    carry_out(plan(CASES, chosen("library"), events=100), bench, Runner(bench, tmp_path, pins=False), kept, 0)
    assert kept_in(kept) == []


def test_the_library_runs_as_a_driver(tmp_path):
    bench, kept = Bench(CASES, tmp_path / "peers"), tmp_path / "runs.jsonl"
    runs = plan(CASES, chosen("library"), events=20_000, names=["W next"])
    carry_out(runs, bench, Runner(bench, tmp_path, pins=False), kept, 600)
    [record] = kept_in(kept)
    assert (record.status, record.matches, record.lines) == ("done", 98, 1), record.reason
    assert record.rate > record.cold_rate > 0
    assert record.start_up_s > 0


@pytest.mark.deep  # the library runs as a driver each day
def test_a_command_is_measured_without_its_start(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.peers.running.ROUNDS", 1)
    bench, kept = Bench(CASES, tmp_path / "peers"), tmp_path / "runs.jsonl"
    runs = [
        run for run in plan(CASES, chosen("forestall match"), events=2_000, names=["W all"]) if run.system.is_command
    ]
    carry_out(runs, bench, Runner(bench, tmp_path, pins=True), kept, 600)
    [record] = kept_in(kept)
    assert (record.system, record.status) == ("forestall match", "done"), record.reason
    assert record.start_up_s > 0
    assert 0 <= record.seconds <= record.whole_s
    assert record.digest == digest_of([])[1]  # two seconds hold none


def test_engines_are_chosen_by_their_name_or_their_peer():
    assert [system.name for system in chosen("flink")] == ["library", "flink-cep", "flink-sql"]
    assert [system.name for system in chosen("forestall")] == ["library", "forestall match", "forestall backtest"]
    assert len(chosen(None)) == 8
    with pytest.raises(SystemExit, match="esper"):
        chosen("esper")


def test_a_process_tells_status_words_and_memory(tmp_path):
    held = "import time; held = bytearray(50_000_000); time.sleep(0.5); raise SystemExit('ValueError: no')"
    done = finish(Launch(command=(sys.executable, "-c", held), environment={}), (), tmp_path, 60)
    assert (done.status, done.last_words) == (1, "ValueError: no")
    assert done.seconds >= 0.5
    if memory_of(1) or sys.platform == "linux":
        assert done.peak_bytes > 50_000_000


def test_a_process_that_takes_too_long_is_ended(tmp_path):
    launch = Launch(command=(sys.executable, "-c", "import time; time.sleep(60)"), environment={})
    assert finish(launch, (), tmp_path, 0.2).status is None


def test_only_one_thread_is_pinned():
    assert pin_words(2, is_wanted=True) == pin_words(1, is_wanted=False) == ()


def test_queries_are_put_into_what_the_drivers_read():
    assert siddhi_app(case_of("clicks, 10 patterns").texts("siddhi")).count("insert into Found") == 10
    java = java_queries(CASES)
    assert all(f'case "{case.name}"' in java for case in CASES if case.wording("flink-cep").text)
    compile(bobo_module(case_of("W next").texts("bobo")), "bobo", "exec")
