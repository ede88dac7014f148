"""Processes are started, started again when they die, stopped together, and do not outlive their supervisor."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from service import Settings
from service.cli import main
from service.errors import DataFolderUnusable
from service.processes.supervisor import Death, Supervisor
from service.processes.temporary import watch
from tests.builders.service import settings_for
from tests.builders.waiting import until

URL = "redis://127.0.0.1:1/0"  # no test connects to this address
LASTING = """
import os, threading
from service.process import end_with_parent

def main():
    end_with_parent(int(os.environ["FORESTALL_PARENT_PID"]))
    print("started with", os.environ["FORESTALL_REDIS_URL"], os.environ["COLOUR"], flush=True)
    threading.Event().wait()
"""
FAILING = "def main(): return 3"
STUBBORN = """
import signal, threading

def main():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    while True:
        threading.Event().wait(1)
"""
DRAINING = """
import os, pathlib, signal, threading

def main():
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    print("begun", flush=True)
    while not asked.wait(0.05):
        pass
    place = pathlib.Path(os.environ["MEETING_PLACE"])
    (place / f"{os.getpid()}.asked").touch()
    while len(list(place.glob("*.asked"))) < 2:
        threading.Event().wait(0.05)
    print("committed", flush=True)
    return 0
"""


@pytest.fixture
def supervisor(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, code in {
        "lasting": LASTING,
        "failing": FAILING,
        "stubborn": STUBBORN,
        "draining": DRAINING,
    }.items():
        (tmp_path / f"{name}.py").write_text(code)
    found = Supervisor(
        settings_for(URL, data_dir=tmp_path / "data"),
        {"COLOUR": "green"},
        {"first": "lasting", "second": "lasting"},
    )
    yield found
    found.stop()


def line_of(process):
    assert process.stdout is not None
    return process.stdout.readline().strip()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_children_run_with_the_settings_and_write_their_logs(supervisor):
    supervisor.start()
    log = supervisor.log_folder / "first.log"
    until(lambda: log.exists() and log.read_text())
    assert log.read_text() == f"started with {URL} green\n"
    assert supervisor.pid("first") != supervisor.pid("second")


def test_a_killed_child_is_started_again_and_the_others_stay(supervisor):
    supervisor.start()
    first, second = supervisor.pid("first"), supervisor.pid("second")
    os.kill(first, signal.SIGKILL)
    until(lambda: not is_alive(first))

    def is_back():
        supervisor.tend()
        return supervisor.pid("first") not in (None, first)

    until(is_back)
    assert supervisor.pid("second") == second


def test_a_child_that_keeps_dying_is_started_with_growing_pauses(supervisor):
    clock = [1_000.0]
    supervisor.children = {"bad": "failing"}
    supervisor.now = lambda: clock[0]
    supervisor.start()
    keeps_dying, pauses = watch(supervisor), []
    for starts in range(2, 7):
        assert keeps_dying() == ""
        until(lambda: supervisor.pid("bad") is None)
        supervisor.tend()  # takes note of the death
        begin = clock[0]
        while supervisor.starts("bad") < starts:
            clock[0] += 0.1
            supervisor.tend()
        pauses.append(round(clock[0] - begin, 1))
    assert pauses == [0.4, 0.8, 1.6, 3.2, 6.4]
    assert keeps_dying().startswith("bad ended 5 times; the logs end with:")


def test_a_death_is_told_with_the_last_line_of_the_log(supervisor):
    told = []
    supervisor.children = {"bad": "failing"}
    supervisor.on_death = lambda death: told.append(death.sentence)
    supervisor.start()
    (supervisor.log_folder / "bad.log").write_text("first\nthe reason\n\n")
    until(lambda: supervisor.pid("bad") is None)
    supervisor.tend()
    assert told == [
        f"bad ended (status 3), it starts again in 0.4 s; {supervisor.log_folder / 'bad.log'} ends with: the reason"
    ]


def test_stop_ends_all_even_what_does_not_listen(supervisor):
    supervisor.children = {"deaf": "stubborn", "first": "lasting"}
    supervisor.settings = settings_for(URL, data_dir=supervisor.settings.data_dir, stop_timeout_s=0.5)
    supervisor.start()
    log = supervisor.log_folder / "deaf.log"
    until(lambda: log.exists() and log.read_text())
    pids = [supervisor.pid("deaf"), supervisor.pid("first")]
    with capture_logs() as said:
        supervisor.stop()
    assert [is_alive(pid) for pid in pids] == [False, False]
    killed = [entry for entry in said if entry["event"] == "process-killed"]
    assert {"event": "process-killed", "name": "deaf", "after_s": 0.5, "log_level": "warning"} in killed


def test_stop_asks_all_at_once_and_each_ends_what_it_has_begun(supervisor, tmp_path):
    """Each ends only when it sees that the other was asked to, too; one after the other they would be killed."""
    supervisor.children = {"first": "draining", "second": "draining"}
    supervisor.overrides = {**supervisor.overrides, "MEETING_PLACE": str(tmp_path)}
    supervisor.start()
    logs = [supervisor.log_folder / f"{name}.log" for name in supervisor.children]
    until(lambda: all(log.exists() and "begun" in log.read_text() for log in logs))
    supervisor.stop()
    assert [log.read_text().split() for log in logs] == [["begun", "committed"]] * 2


def test_children_end_when_the_supervisor_is_killed(supervisor, tmp_path):
    code = f"""
import sys
from pathlib import Path
from threading import Event
from service import Settings
from service.cli import main
from service.errors import DataFolderUnusable
from service.processes.supervisor import Supervisor
from tests.builders.service import settings_for
sys.path.insert(0, {str(tmp_path)!r})
supervisor = Supervisor(
    settings_for({URL!r}, data_dir=Path({str(tmp_path / "other")!r})),
    {{"COLOUR": "red"}},
    {{"first": "lasting"}},
)
supervisor.start()
print(supervisor.pid("first"), flush=True)
supervisor.run(Event())
"""
    with subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True) as process:
        child = int(line_of(process))
        log = tmp_path / "other" / "logs" / "first.log"
        until(lambda: log.exists() and log.read_text())
        process.kill()
    until(lambda: not is_alive(child))
    assert not is_alive(child)


def test_children_end_and_are_started_again_when_their_fork_server_is_killed(supervisor):
    supervisor.start()
    first, log = supervisor.pid("first"), supervisor.log_folder / "first.log"
    until(lambda: log.exists() and log.read_text())
    os.kill(int(Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
    until(lambda: not is_alive(first))

    def is_back():
        supervisor.tend()
        return supervisor.pid("first") not in (None, first)

    until(is_back)
    assert is_alive(supervisor.pid("first"))


def test_one_data_folder_serves_one_supervisor(supervisor):
    supervisor.start()
    other = Supervisor(supervisor.settings, {}, {})
    with pytest.raises(
        DataFolderUnusable, match="is in use by another forestall process: name another folder with FORESTALL_"
    ):
        other.start()
    supervisor.stop()
    other.start()
    other.stop()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(DataFolderUnusable, match=f"the data folder {file} cannot be used"):
        Supervisor(settings_for(URL, data_dir=file), {}, {}).start()


def test_a_private_redis_that_outlived_its_supervisor_is_taken_over_and_stopped(tmp_path):
    code = f"""
from pathlib import Path
from service import Settings
from service.processes.supervisor import Supervisor
supervisor = Supervisor(Settings(data_dir=Path({str(tmp_path)!r}), redis_url=None), {{}}, {{}})
supervisor.start()
print(supervisor.redis_url, flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        url = line_of(process)
        process.kill()
    port = int(url.rpartition(":")[2].partition("/")[0])
    heir = Supervisor(Settings(data_dir=tmp_path, redis_url=None), {}, {})
    heir.start()
    assert heir.redis_url == url
    heir.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


NO_SPACE = """
import os, resource, sys
from pathlib import Path
from service import Settings
from service.processes.supervisor import Supervisor
from service.stores import connect
folder = Path(sys.argv[1])
clock, deaths = [1_000.0], []
supervisor = Supervisor(
    Settings(data_dir=folder, redis_url=None), {}, {"lasting": "lasting"}, now=lambda: clock[0], on_death=deaths.append
)

def tend(rounds):
    for _ in range(rounds):
        clock[0] += 11.0
        supervisor.tend()

os.environ["COLOUR"] = "blue"
sys.path.insert(0, sys.argv[2])
supervisor.start()
pid = supervisor._server._process.pid
with connect(supervisor.redis_url, retries=0) as client:
    client.set("kept", "yes")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))  # from here on no file of this process grows
    try:
        client.set("lost", "yes")
    except Exception as error:
        print(type(error).__name__)
supervisor._server._process.wait()
tend(4)
print(*(death.name for death in deaths), bool(deaths[-1].reason))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
tend(2)
with connect(supervisor.redis_url, retries=0) as client:
    print(client.get("kept"), client.get("lost"))
servers = [
    file.parent.name
    for file in Path("/proc").glob("[0-9]*/cwd")
    if os.path.lexists(file) and os.access(file, os.R_OK) and os.readlink(file) == str(folder / "redis")
]
print(servers == [str(supervisor._server._process.pid)], supervisor.pid("lasting") is not None)
supervisor.stop()
"""


def test_a_disk_without_room_ends_no_supervisor_and_leaves_one_server(supervisor, tmp_path):
    """No file may grow for a while, which is what a full disk does to a process."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", NO_SPACE, str(tmp_path / "full"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.stdout.splitlines() == [
        "StoreUnavailable",
        "redis redis redis redis True",
        "b'yes' None",
        "True True",
    ], ran.stderr


def test_a_child_whose_log_cannot_be_opened_is_started_later(supervisor):
    deaths: list[Any] = []
    supervisor.on_death = deaths.append
    supervisor.log_folder.mkdir(parents=True)
    (supervisor.log_folder / "first.log").mkdir()
    supervisor.start()
    assert [(death.name, death.status, death.reason) for death in deaths] == [("first", None, "Is a directory")]
    assert "first cannot be started (Is a directory), it starts again in 0.4 s; " in deaths[0].sentence
    (supervisor.log_folder / "first.log").rmdir()
    supervisor.now = lambda: time.monotonic() + 60
    supervisor.tend()
    assert supervisor.pid("first") is not None


def test_logs_of_processes_are_rotated(supervisor):
    supervisor.settings = settings_for(URL, data_dir=supervisor.settings.data_dir, log_file_bytes=10_000)
    supervisor.start()
    log = supervisor.log_folder / "first.log"
    until(lambda: log.exists() and log.read_text())
    with log.open("a") as more:
        more.write("x" * 10_000)
    supervisor.now = lambda: time.monotonic() + 60
    supervisor.tend()
    assert (log.stat().st_size, log.with_name("first.log.1").stat().st_size > 10_000) == (0, True)


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4_096))
    death = Death(name="redis", pause_s=2.0, log_file=tmp_path / "none.log", status=1)
    assert death.sentence == (
        f"redis ended (status 1), it starts again in 2 s; the disk is full (4,096 bytes are free); {death.log_file} "
        "ends with: nothing was logged"
    )


def test_serve_refuses_a_port_that_is_taken(monkeypatch, capsys, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("FORESTALL_DATA_DIR", str(tmp_path))
        monkeypatch.setattr(sys, "argv", ["forestall", "serve", "--port", str(port)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    assert f"error: port {port} on 127.0.0.1 cannot be used" in capsys.readouterr().err
