import os

import pytest

from constraints import guarded_exercise
from service.doctor.machine import EVERYTHING, look_at_kernels
from shards import EXERCISES, KINDS, PatternKind
from shards.kinds.aggregates.kind import AggregateKind
from shards.kinds.joins import JoinKind
from streams import kept_folder, make_kept_folder
from streams.compiling import JSON_LINES, LOOKUPS, kernels_folder
from streams.kernels.keeping import keep_needs


@pytest.fixture(autouse=True)
def top(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def keep(name):
    make_kept_folder(kernels_folder())
    (kernels_folder() / f"{name}.nbi").touch()
    (kernels_folder() / f"{name}.1.nbc").write_bytes(b"x" * 1024**2)


def test_everything_is_every_matcher_every_join_and_reading():
    assert guarded_exercise() == PatternKind.exercise
    assert (*EXERCISES, JSON_LINES) == EVERYTHING
    assert len(EXERCISES) == sum(bool(kind.exercise) for kind in KINDS) + 1 == 4
    assert EXERCISES[-1] == LOOKUPS


def test_before_the_first_use_nothing_is_there():
    found = look_at_kernels()
    assert (found.verdict, found.found.partition(" MiB")[0]) == ("ok", "0 are compiled, 0.0")
    assert str(kernels_folder()) in found.found
    assert "forestall warm-up" in found.found


def test_it_says_how_many_are_there_of_those_that_are_needed():
    keep_needs(PatternKind.exercise, ["one", "two"])
    keep_needs(JoinKind.exercise, [])
    keep_needs(AggregateKind.exercise, [])
    keep_needs(LOOKUPS, [])
    keep_needs(JSON_LINES, ["three"])
    keep("one")
    keep("three")
    assert look_at_kernels().found.startswith("2 of 3 are compiled, 2.0 MiB in ")
    keep("two")
    found = look_at_kernels()
    assert found.found.startswith("3 of 3 are compiled, 3.0 MiB in ")
    assert "warm-up" not in found.found


def test_a_folder_that_others_may_write_to_is_a_problem():
    make_kept_folder(kernels_folder())
    kept_folder("kernels").chmod(0o777)
    found = look_at_kernels()
    assert found.verdict == "problem"
    assert "can be written by other users" in found.found
    assert "NUMBA_CACHE_DIR" in found.advice


def test_a_folder_that_cannot_be_written_is_a_warning(monkeypatch, top):
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = look_at_kernels()
    assert found.verdict == "warning"
    assert found.found == f"{top.parent} cannot be written: each process compiles its own kernels"


def test_without_a_home_there_is_a_warning(monkeypatch):
    monkeypatch.setattr("service.doctor.machine.kernels_folder", homeless)
    assert look_at_kernels().verdict == "warning"


def homeless():
    raise FileNotFoundError("no folder for caches")
