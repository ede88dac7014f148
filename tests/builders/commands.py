"""Commands for tests, forked from one process that has imported the command line once.

A test calls the programs of ``running_commands`` as it would call ``forestall`` and ``python``: each is a small client
that passes its arguments, environment, folder and open files to the process here, and ends as the forked command does.
``serve`` and ``demo``, which start processes of their own, are started as users start them.
"""

from __future__ import annotations

import atexit
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_OPEN = 0, 1, 2
_CLIENT = r"""#!{python} -IS
import os, sys
from _signal import SIGINT, SIGTERM, SIG_DFL, signal
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOCK_STREAM, SOL_SOCKET, socket

name, arguments = sys.argv[0].rpartition("/")[2], sys.argv[1:]
parts = [name, os.getcwd(), str(len(arguments)), *arguments, *map("=".join, os.environ.items())]
if name == "forestall" and arguments[:1] in (["serve"], ["demo"]):
    os.execv({program!r}, [{program!r}, *arguments])
server = socket(AF_UNIX, SOCK_STREAM)
server.connect({address!r})
opened = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([b"."], [(SOL_SOCKET, SCM_RIGHTS, opened)])
server.sendall(b"\0".join(map(os.fsencode, parts)))
server.shutdown(SHUT_WR)
started = int(server.recv(8))
for number in (SIGINT, SIGTERM):
    signal(number, lambda number, _: os.kill(started, number))
status = int(server.recv(8))
if status < 0:
    signal(-status, SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@contextmanager
def running_commands(*first: str, path: str = "") -> Iterator[Path]:
    """The process that commands are forked from; yields a folder with the programs ``forestall`` and ``python-forked``.

    Commands that still run at the end are killed.

    Args:
        first: Modules that are imported before the command line.
        path: Folders in which it also finds modules.
    """
    with TemporaryDirectory(prefix="forestall-commands-") as folder:
        address = str(Path(folder, "socket"))
        words = [sys.executable, "-P", __file__, address, *first]
        environment = os.environ | ({"PYTHONPATH": path} if path else {})
        pipe = subprocess.PIPE
        with subprocess.Popen(words, env=environment, stdin=pipe, stdout=pipe, start_new_session=True) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == b"ready\n"
                yield _programs(Path(folder, "bin"), address)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _programs(folder: Path, address: str) -> Path:
    folder.mkdir()
    installed = str(Path(sys.executable).with_name("forestall"))
    client = folder / "forestall"
    client.write_text(_CLIENT.format(python=sys.executable, program=installed, address=address), encoding="utf-8")
    client.chmod(0o700)
    (folder / "python-forked").hardlink_to(client)
    return folder


def main() -> None:
    """Import all commands, then fork each that a client asks for, until the standard input is closed."""
    gc.disable()
    for name in (*sys.argv[2:], "service.cli.starting", "rich.console", "rich.markup"):
        import_module(name)
    import_module("service.cli.app").build_app()
    _warm_up()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if not os.fork():
                listener.close()
                _attend(connection)
            connection.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _warm_up() -> None:
    """Load what most commands load when they begin: pandas, the grammar of patterns, the kernels of both engines."""
    import_module("pandas")
    nfa, streams = import_module("nfa"), import_module("streams")
    matcher = nfa.Matcher()
    for number, condition in enumerate(("", " WHERE a.v <= b.v WITHIN 4 s")):
        matcher.add_pattern(f"PATTERN p{number} EVENT SEQ(A a, B b){condition}")
    events = [streams.Event(id=f"{one}1", type=one, time_us=1, key="k", data={"v": 1}) for one in "AB"]
    matcher.process(streams.EventBatch.from_events(events))
    matcher.finish()


def _attend(connection: socket.socket) -> None:
    """Fork the command of a client, and send its process and then its status."""
    _, opened, _, _ = socket.recv_fds(connection, 1, len(_OPEN))
    with connection.makefile("rb") as file:
        name, folder, count, *rest = map(os.fsdecode, file.read().split(b"\0"))
    arguments, environment = rest[: int(count)], rest[int(count) :]
    if not (command := os.fork()):
        connection.close()
        for number, file_number in zip(_OPEN, opened, strict=True):
            os.dup2(file_number, number)
            os.close(file_number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(dict(one.split("=", 1) for one in environment))
        sys.argv[:] = [name, *arguments]
        _run(_program_of(name, arguments))
    for number in opened:
        os.close(number)
    connection.sendall(f"{command:8}".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    with suppress(OSError):
        connection.sendall(f"{status:8}".encode())
    os._exit(0)


def _program_of(name: str, arguments: list[str]) -> Callable[[], object]:
    if name == "forestall":
        return import_module("service.cli").main  # type: ignore[no-any-return]
    _, text = arguments  # -c, and the text
    scope: dict[str, Any] = {"__name__": "__main__"}
    return lambda: exec(compile(text, "<string>", "exec"), scope)


def _run(program: Callable[[], object]) -> None:
    """Run a program with the files that are open now, and end as Python ends a process."""
    files = (os.fdopen(number, mode, closefd=False) for number, mode in zip(_OPEN, "rww", strict=True))
    sys.stdin, sys.stdout, sys.stderr = files
    status = 0
    try:
        program()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    # house: allow broad-except: as Python ends a process
    except BaseException:
        traceback.print_exc()
        status = 1
    vars(threading)["_shutdown"]()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
