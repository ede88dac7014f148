"""What the conftest of all tests does for a pass: fewer examples, signs of life, a bound, and what workers find."""

import gc
import os
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house import ROOT
from house.examples import Draws, share_examples, share_of
from house.session import Heartbeat
from house.sharing import uses_spark
from tests.builders.waiting import until


@pytest.fixture
def run(tmp_path):
    """Runs pytest on some lines, with the conftest of this project."""
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "__init__.py").touch()
    (tmp_path / "planted" / "kernels.py").write_text("from numba import njit\n\n@njit\ndef f(x):\n    return x\n")
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "scripts"), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "0", "PYTEST_ADDOPTS": ""}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # loading all takes as long as what is run

    def run(text, *options):
        (tmp_path / "test_planted.py").write_text(text)
        plugins = ["-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "-p", "xdist.plugin"]
        words = [sys.executable, "-m", "pytest", *plugins, *options, str(tmp_path)]
        done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_share_of_many_examples_and_all_of_few():
    assert [share_of(examples, 0.2) for examples in (400, 100, 60, 20, 10, 5)] == [80, 20, 12, 10, 10, 5]


@pytest.mark.parametrize(
    ("share", "times", "drawn"), [(1, 1, 50), (0.5, 1, 25), (0.5, 2, 25), (0.1, 1, 10), (0.1, 2, 5)]
)
def test_property_tests_draw_their_share_and_few_for_each_parameter(share, times, drawn):
    numbers = []

    @settings(max_examples=50, database=None)
    @given(st.integers())
    def draw(number):
        numbers.append(number)

    share_examples([*[draw] * times, len], share)
    draw()
    assert len(numbers) == drawn


def test_loops_draw_their_share_and_more_until_they_have_met_what_is_rare():
    assert [len(Draws(0.1)(cases)) for cases in (6_000, 60, 5)] == [600, 10, 5]
    met: set[int] = set()
    for number in Draws(0.1).until(400, lambda: 70 in met):
        met.add(number)
    assert met == set(range(71))
    assert len(list(Draws(0.1).until(400, lambda: True))) == 40
    assert len(list(Draws(0.1).until(400, lambda: False))) == len(list(Draws(1).until(400, lambda: True))) == 400


def test_partners_meet_a_third_in_turn_and_all_in_deep():
    names = "abcdefgh"
    assert [Draws(1).turn(names, number) for number in (0, 7)] == [names, names]
    assert [Draws(0.1).turn(names, number) for number in range(4)] == ["adg", "beh", "cf", "adg"]


def test_a_pass_says_what_share_its_tests_draw(run):
    text = "from hypothesis import given, settings, strategies as st\nN = []\n"
    text += "@settings(max_examples=100, database=None)\n@given(st.integers())\ndef test_it(n):\n    N.append(n)\n"
    text += "def test_count():\n    assert len(N) == 20\n"
    assert run(text)[0] == 1
    assert run(text, "--examples-share=0.2")[0] == 0


def test_examples_are_the_same_in_each_run_unless_a_seed_is_given(run):
    text = "from hypothesis import given, strategies as st\n"
    text += "@given(st.integers())\ndef test_it(n):\n    assert n is not None\n    print('drawn', n)\n"

    def drawn(*options):
        status, output = run(text, "-s", "--examples-share=1", *options)
        assert status == 0, output
        return [line for line in output.splitlines() if "drawn" in line]

    usual, first = drawn(), drawn("--hypothesis-seed=1")
    assert len(usual) == 100
    assert usual == drawn()
    assert usual != first == drawn("--hypothesis-seed=1") != drawn("--hypothesis-seed=2")


def test_garbage_is_looked_for_among_what_tests_make():
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    assert not any(found is test_tests_of_one_id_are_refused for found in gc.get_objects())


def test_what_runs_is_named_when_nothing_has_been_shown_for_long():
    said: list[str] = []
    heartbeat = Heartbeat(said.append, silence_s=0.05)
    heartbeat.pytest_sessionstart()
    heartbeat.pytest_runtest_logstart("test_a.py::test_b")
    until(lambda: said, "a line", pause_s=0.01)
    heartbeat.pytest_sessionfinish()
    assert said[0] == "test_a.py::test_b, 0 s"


@pytest.mark.parametrize("options", [(), ("--numprocesses=1",)], ids=["alone", "workers"])
def test_a_pass_that_takes_longer_than_its_bound_is_interrupted(run, options):
    began = time.monotonic()
    status, said = run("import time\ndef test_it():\n    time.sleep(600)\n", "--bound=1", *options)
    assert status == 2, said
    assert time.monotonic() - began < 300


def test_a_failure_after_a_command_that_succeeded_fails_the_pass(run):
    text = "import sys\nfrom service.cli import main\ndef test_it():\n    sys.argv[1:] = ['--version']\n"
    text += "    try:\n        main()\n    except SystemExit as end:\n        assert end.code, 'planted'\n"
    status, said = run(text)
    assert (status, "planted" in said) == (1, True)


def test_tests_of_one_id_are_refused(run):
    text = "def test_it():\n    assert 1\ndef pytest_collection_modifyitems(items):\n    items += items\n"
    assert run(text)[0] == 0
    status, said = run(text, "-p", "test_planted")
    assert (status, "several tests have one id" in said, "::test_it" in said) == (4, True, True)


@pytest.mark.parametrize("options", [(), ("--numprocesses=1",)], ids=["alone", "workers"])
def test_a_second_signature_fails_the_pass_wherever_it_was_compiled(run, options):
    text = "from planted.kernels import f\ndef test_it():\n    assert f(1) == 1\n{}"
    assert options or run(text.format(""))[0] == 0  # alone, one signature passes
    status, said = run(text.format("    assert f(1.5) == 1.5\n"), *options)
    assert status == 1
    assert "planted.kernels.f was compiled 2 times" in said


def test_files_whose_tests_share_a_spark_are_known_to_the_scheduler(request, tmp_path):
    """By their text, as the process that shares files out collects no tests."""
    sharing = {item.path for item in request.session.items if "spark_options" in getattr(item, "fixturenames", ())}
    assert sharing <= {item.path for item in request.session.items if uses_spark(item.path)}
    asks = {"def test_it({}, tmp_path):": True, '@mark.usefixtures("a", "{}_options")': True, "def {}_of(it):": False}
    texts = asks | {'request.getfixturevalue("{}")': True, "@mark.{}": False}
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_text(text.format("spark"))
    assert [uses_spark(tmp_path / str(number)) for number in range(len(texts))] == list(texts.values())
