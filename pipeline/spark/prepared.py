"""A Python daemon for Spark that is prepared while Spark's Java process starts.

Java starts the daemon that forks the workers. So modules and kernels would be loaded only after the start of Java, and
loading takes as long as this start. The process that starts Java therefore also starts a prepared daemon
(``session.prepared_daemon``). The daemon that Java starts passes its standard streams, environment and arguments on to
the prepared daemon, and waits for its end. If there is no prepared daemon, or it is in use, the daemon that Java starts
does the work itself.
"""

from __future__ import annotations

import os
import select
import socket
import sys
from contextlib import suppress
from pathlib import Path

import orjson

PLACE = "FORESTALL_PREPARED_DAEMON"
"""Environment variable of Spark's Python processes: the socket of the prepared daemon."""

LISTENING = "--listening="
"""Prefix of the argument with the file descriptor of a prepared daemon's socket."""

_STREAMS = (0, 1, 2)
_ACCEPTED = b"1"
_PIECE = 65_536


def is_prepared() -> bool:
    """Check whether this process is a prepared daemon, which was started before Spark's own daemon."""
    return sys.argv[-1].startswith(LISTENING)


def await_turn() -> None:
    """Wait in a prepared daemon for the daemon that Java starts, and continue in its place. Exit if no daemon comes.

    This process takes over the environment, arguments and standard streams of the other daemon.
    """
    with socket.socket(fileno=int(sys.argv[-1].removeprefix(LISTENING))) as listening:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        _remove(Path(listening.getsockname()))
        if listening not in ready:
            sys.exit()
        daemon, _ = listening.accept()
    data, streams, _, _ = socket.recv_fds(daemon, _PIECE, len(_STREAMS))
    while piece := daemon.recv(_PIECE):
        data += piece
    request = orjson.loads(data)
    for number, stream in zip(_STREAMS, streams, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    # house: allow environment: this process becomes another one
    os.environ.clear()
    os.environ.update(request["environment"])  # house: allow environment: this process becomes another one
    sys.argv = request["arguments"]
    daemon.sendall(_ACCEPTED)
    os.register_at_fork(
        after_in_child=daemon.close
    )  # open until the end of this process, for which the other one waits


def _remove(place: Path) -> None:
    """Remove the socket of a prepared daemon and the socket's folder.

    Otherwise they would remain if the process that created them is killed.
    """
    with suppress(OSError):
        place.unlink()
        place.parent.rmdir()


def hand_over() -> bool:
    """Let a prepared daemon continue in place of this one, wait until the prepared daemon ends, and return True.

    Return False if there is no prepared daemon.
    """
    # house: allow environment: Spark passes it to its processes
    environment = dict(os.environ)
    with socket.socket(socket.AF_UNIX) as daemon:
        try:
            daemon.connect(environment.get(PLACE, ""))
            data = orjson.dumps({"environment": environment, "arguments": sys.argv})
            sent = socket.send_fds(daemon, [data], _STREAMS)
            daemon.sendall(data[sent:])
            daemon.shutdown(socket.SHUT_WR)
            is_accepted = daemon.recv(1) == _ACCEPTED
            daemon.recv(1)
        except OSError:
            return False
    return is_accepted
