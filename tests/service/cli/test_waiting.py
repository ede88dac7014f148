import io
import threading
from types import SimpleNamespace

from rich.console import Console
from rich.progress import Progress

from service.cli.inputs import progress_bar
from service.cli.waiting import LINES_REST_S, Waiting, waiting_in, waiting_on, working
from streams.compiling import CompileProgress
from tests.builders.waiting import until


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("service.cli.waiting.time", SimpleNamespace(monotonic=lambda: self.now))


def test_it_says_for_how_long_it_has_waited_and_not_too_often(monkeypatch):
    clock = Clock(monkeypatch)
    said: list[str] = []
    say = Waiting(said.append, 2.0)
    for now, text in ((100.0, "one"), (101.9, "two"), (102.0, "three"), (111.0, "four")):
        clock.now = now
        say(text)
    assert said == ["one (0 s)", "three (2 s)", "four (11 s)"]


def test_compiling_is_once_per_machine(monkeypatch):
    Clock(monkeypatch)
    said: list[str] = []
    Waiting(said.append, 0.0).compiling(CompileProgress(12, 40))
    assert said == ["compiling kernels, 12 of 40; once per machine (0 s)"]


def test_nothing_is_silent_for_more_than_three_seconds():
    assert LINES_REST_S + 1.0 <= 3.0  # a process that prints lines prints one a second


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_gets_lines(monkeypatch):
    clock, out = Clock(monkeypatch), io.StringIO()
    with waiting_on(out) as say:
        for now in (100.0, 101.0, 103.0):
            clock.now = now
            say("waiting for [the] pipeline")
    assert out.getvalue().splitlines() == ["waiting for [the] pipeline (0 s)", "waiting for [the] pipeline (3 s)"]


def test_a_terminal_gets_one_line_that_is_rewritten_and_cleared(monkeypatch):
    Clock(monkeypatch)
    monkeypatch.setenv("COLUMNS", "30")
    with waiting_on(out := Terminal()) as say:
        say("compiling kernels")
        say("compiling kernels, 1 of 2; once per machine")
        say.clear()
        out.write("ready\n")
    again = "\r\x1b[2K"
    assert out.getvalue() == f"{again}compiling kernels (0 s){again}compiling kernels, 1 of 2; on{again}ready\n"


def test_where_there_is_nothing_to_say_a_terminal_stays_as_it_is():
    with waiting_on(out := Terminal()):
        assert out.getvalue() == ""
    assert out.getvalue() == ""


def test_beside_a_bar_it_takes_the_place_of_the_title(capsys):
    with Progress(console=Console(file=io.StringIO())) as progress:
        task = progress.add_task("events", total=None)
        waiting_in(progress, task, is_shown=True)("starting Spark")
        assert progress.tasks[0].description == "starting Spark (0 s)"
    waiting_in(progress, task, is_shown=False)("starting Redis")
    assert capsys.readouterr().err == "starting Redis (0 s)\n"


def test_work_that_takes_long_is_named_in_a_log(monkeypatch):
    monkeypatch.setattr("service.cli.waiting.LINES_REST_S", 0.01)
    out, named = io.StringIO(), threading.Event()
    monkeypatch.setattr(out, "flush", named.set)
    with working("matching 7 events", out):
        assert named.wait(300)
    assert set(out.getvalue().splitlines()) == {"matching 7 events (0 s)"}


def test_work_that_is_done_at_once_is_not_named():
    out = io.StringIO()
    with working("matching 7 events", out):
        pass
    assert out.getvalue() == ""


def test_reading_a_file_is_named_in_a_log(monkeypatch, capsys):
    monkeypatch.setattr("service.cli.waiting.LINES_REST_S", 0.01)
    with progress_bar("reading events.jsonl"):
        said = until(lambda: capsys.readouterr().err, "the line", pause_s=0.01)
    assert said.startswith("reading events.jsonl (0 s)\n")
