"""A feed as a process of its own that dies at a chosen moment; run by ``test_feeds``.

Arguments: data folder (the files are in ``in`` below it), URL of the log, how to die, and at which portion.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from pipeline import QueryFailed, SessionOptions, build_session
from pipeline.feeds import FeedOptions, FolderOptions, start_feed
from service import Intake, Stores
from service.intake.feeds import FeedSink, opened_feed
from service.settings import Limits
from service.stores import connect
from streams import SystemClock
from tests.builders.service import settings_for


class DyingIntake:
    def __init__(self, intake, session, manner, calls_left):
        self.intake = intake
        self.jvm = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        self.manner = manner
        self.calls_left = calls_left

    def ingest(self, *arguments, **named):
        self.calls_left -= 1
        is_last = self.calls_left == 0
        if is_last and self.manner == "before-append":
            os.kill(os.getpid(), signal.SIGKILL)
        report = self.intake.ingest(*arguments, **named)
        if is_last and self.manner == "after-append":
            os.kill(os.getpid(), signal.SIGKILL)
        if is_last and self.manner == "jvm":
            os.kill(self.jvm, signal.SIGKILL)
        return report


def main():
    folder, url, manner, calls = Path(sys.argv[1]), *sys.argv[2:]
    session = build_session(SessionOptions(data_folder=folder, master="local[2]"))
    with connect(url) as client, opened_feed(folder, "f", "orders", "folder in") as feed:
        stores = Stores(client, url, settings_for(url))
        limits = Limits(max_batch_events=300)
        intake = DyingIntake(Intake(stores.log, stores.registry, limits, SystemClock()), session, manner, int(calls))
        sink = FeedSink(intake, stores.feeds, feed, limits, threading.Event())
        source = FolderOptions(folder=folder / "in", state=feed.folder, max_rows=1_000)
        try:
            start_feed(session, FeedOptions(source=source, state=feed.folder, is_bounded=True), sink).wait()
        except QueryFailed as error:
            sys.exit(f"failed: {error}")


if __name__ == "__main__":
    main()
