"""The main function of each process of the service: settings, signals, exit status."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from pathlib import Path
from types import FrameType

import structlog

from service.errors import SettingsInvalid
from service.observing.logs import configure_logs
from service.settings import Settings, load_settings
from service.settings_table import unknown_variables
from streams import ForestallError

_POLL_S = 1.0

STOPPED, FAILED, UNUSABLE_SETTINGS = 0, 1, 2

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(KeyboardInterrupt):
    """The exception that SIGTERM or SIGINT raises in a process, unless its work handles the signals itself.

    It is a ``KeyboardInterrupt``, because Spark's bridge to Java and uvicorn clean up only after this exception.
    """


def run_process(name: str, work: Callable[[Settings], None]) -> int:
    """Run the work of a process with the settings from the environment until the process is stopped.

    SIGTERM and SIGINT raise ``Stopped`` unless the work handles them itself. The exit status is 0 if the process was
    stopped, 1 if it failed, and 2 if the settings are invalid.
    """
    try:
        settings = load_settings()
    except SettingsInvalid as error:
        sys.stderr.write(f"{error.message}\n")
        return UNUSABLE_SETTINGS
    configure_logs(settings.log_level)
    log = structlog.get_logger(__name__).bind(process=name)
    if settings.parent_pid is None:  # the parent process has already logged the warnings
        for fault in unknown_variables():
            log.warning("unknown-setting", error=fault)
    try:
        for number in _SIGNALS:
            signal.signal(number, _stop)
        if settings.parent_pid is not None:
            end_with_parent(settings.parent_pid)
        gc.freeze()  # Loaded objects are permanent. Scanning them in each collection would take longer than parsing.
        work(settings)
    except Stopped:
        pass
    except ForestallError as error:
        log.error("process-failed", code=error.code, error=error.message)
        return FAILED
    log.info("process-stopped")
    return STOPPED


def life_sign(folder: Path | None, name: str) -> Callable[[], None]:
    """Return a function with which a process shows regularly that it is alive.

    The function touches the file ``name`` in ``folder``. If the file becomes old, the process hangs. If ``folder`` is
    None, the function does nothing.
    """
    if folder is None:
        return lambda: None
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name

    def touch() -> None:
        with suppress(OSError):
            file.touch()

    touch()
    return touch


@contextmanager
def beside(work: Callable[[threading.Event], object], name: str) -> Iterator[None]:
    """Run ``work`` in a thread while the block runs.

    ``work`` gets an event that is set when the block ends. Then the block waits for the thread.
    """
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def signals_held() -> Iterator[None]:
    """Delay SIGTERM and SIGINT until the block ends.

    The block starts a process. If a signal ended the block too early, the id of the process would remain unknown, and
    the process would continue to run.
    """
    held: list[int] = []
    handlers = {
        number: signal.signal(number, lambda signal_number, _: held.append(signal_number)) for number in _SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for signal_number in held:
        signal.raise_signal(signal_number)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


def end_with_parent(parent: int) -> None:
    """Start a daemon thread that sends SIGTERM to this process once its parent process has ended."""
    threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def _watch(parent: int) -> None:
    """Send SIGTERM to this process once its parent has ended.

    A forked process has two parents: the process that started it, and the fork server. The end of either counts.
    """
    starter, pause = parent_process(), threading.Event()
    forker = parent if starter is None else os.getppid()
    while os.getppid() == forker and (starter is None or starter.is_alive()):
        pause.wait(_POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)
