"""Random kills of the service's processes: no event is lost, and no alert is emitted twice.

A client posts orders in batches, each with an idempotency key, and repeats each request until it is answered. Meanwhile
processes of the service are killed (SIGKILL) at seeded random moments: the API, the deliverer, Redis, the pipeline's
driver, its Java process, or one of its Python workers. Each kind is killed once in random order; after that, kinds are
chosen at random. The client sometimes waits for a kill, so that enough events are left for later kills. In the end, the
alerts and early terminations must have the same ids as those of shards in this process over the same events, each
exactly once, and there must be no dead letters. This is the long form of ``tests/system/test_chaos.py``.

    scripts/bench pipeline_chaos --kills=50 --events=200000
    scripts/bench pipeline_chaos --kills=30 --events=100000 --only=worker
    scripts/bench pipeline_chaos --kills=3 --events=50000 --only=paused --master='local[2]'
"""

from __future__ import annotations

import os
import random
import signal
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread
from typing import Protocol

import orjson

from benchmarks.shard_gaps import ShardGaps
from benchmarks.workload import EP1, Q1, order_constraints, orders
from constraints import to_document
from service.processes.temporary import TemporaryService, require_ready, running
from service.readiness import missing_part
from service.sending import send_events
from streams import ConstraintsOn, Event, ForestallError, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step, bodies, log_of, run_inline
from workflows import OrderSettings

STREAM = "chaos"
PATTERNS = {
    "Q1": Q1,
    "EP1": EP1,
    "unquoted": "PATTERN unquoted EVENT SEQ(OrderFromSupplier o, NOT GenerateQuote q [price > 200], FinishOrder f) "
    "WITHIN 30 d",
    "kept": "PATTERN kept EVENT SEQ(CheckInventory c [priority > 900], NOT CancelOrder x)",
}
VICTIMS = ("api", "driver", "redis", "jvm", "worker", "deliverer")
PAUSED = "paused"
"""A worker that is stopped for longer than its lease, and then continues."""
PAUSE_S = 8.0
_SETTLED_S = 1.0
SETTINGS = {"LIMITS__RECENT_KEPT": "1000000"}  # keeps every early termination listed until the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Parameters of a run.

    Attributes:
        events: The minimum number of events to post.
        request: The number of events of a request.
        kills: The number of kills.
        pause_s: The longest random pause before a kill.
        patience_s: The maximum time to wait for results after the last request and kill.
        seed: The seed of the events, the victims and the times of kills.
        kinds: The kinds of processes to kill.
        is_patient: Whether each kill waits until the service is ready again, with every kind of process running.
        every_s: The pause between two requests.
    """

    events: int
    request: int = 200
    kills: int = 6
    pause_s: float = 3.0
    patience_s: float = 240.0
    seed: int = 7
    kinds: Sequence[str] = VICTIMS
    is_patient: bool = False
    every_s: float = 0.0

    def victims(self) -> list[str]:
        """Return the victim of each kill: first each kind once in random order, then random kinds."""
        chance = random.Random(self.seed)
        first = chance.sample(self.kinds, len(self.kinds))[: self.kills]
        return first + chance.choices(self.kinds, k=self.kills - len(first))


@dataclass(slots=True)
class Outcome:
    """The results of a run.

    Attributes:
        expected: The ids of the expected alerts.
        found: The ids of the alerts in the log.
        expected_endings: The ids of the expected early terminations.
        found_endings: The ids of the early terminations that the service lists.
        others: The expected and found ids of further results, by their kind.
        dead_letters: All dead letters.
        killed: The number of kills of each kind of process.
        spared: The victims of kills that found no running process in time.
        starts: The number of starts of each process, including the start before the run.
        seconds: The time from the first request to the last alert.
        gaps_s: The worst gap of a shard after kills of each kind, for continuous tasks only.
    """

    expected: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    expected_endings: list[str] = field(default_factory=list)
    found_endings: list[str] = field(default_factory=list)
    others: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    dead_letters: list[str] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)
    spared: list[str] = field(default_factory=list)
    starts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    gaps_s: dict[str, float] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """Descriptions of all faults. Empty if the run has none."""
        counts = {
            **_differences("alerts", self.expected, self.found),
            **_differences("early endings", self.expected_endings, self.found_endings),
            **{
                name: count
                for what, (expected, found) in self.others.items()
                for name, count in _differences(what, expected, found).items()
            },
            "dead letters": len(self.dead_letters),
            "kills that found no process": len(self.spared),
            "starts of the pipeline, though only workers were killed": self._needless_starts,
        }
        shown = [f"the first: {self.dead_letters[0]}"] if self.dead_letters else []
        return [f"{count:,} {what}" for what, count in counts.items() if count] + shown

    @property
    def _needless_starts(self) -> int:
        """The number of restarts of the pipeline in a run that killed only workers.

        Spark must repeat a worker's task instead.
        """
        return self.starts.get("pipeline", 1) - 1 if set(self.killed) == {"worker"} else 0


def _differences(what: str, expected: Sequence[str], found: Sequence[str]) -> dict[str, int]:
    """Return the numbers of missing, unexpected and repeated ids. Each expected id must be found exactly once."""
    wanted, got = set(expected), set(found)
    return {
        f"{what} lost": len(wanted - got),
        f"{what} that should not be": len(got - wanted),
        f"{what} told twice": len(found) - len(got),
    }


class Case(Protocol):
    """A test case: the events to post, and the expected results."""

    def events(self, plan: Plan) -> list[Event]:
        """Return all events, in the order in which they are posted."""
        ...

    def stream_of(self, event: Event) -> str:
        """Return the stream of an event."""
        ...

    def expected(self, events: Sequence[Event], request: int) -> Outcome:
        """Return the expected results of the events, computed by shards in this process."""
        ...

    def declare(self, service: TemporaryService) -> None:
        """Declare streams and register patterns through the API."""
        ...

    def ask(self, service: TemporaryService, posted: Mapping[str, Sequence[Event]], outcome: Outcome) -> None:
        """Ask a question after a kill. By default, ask none.

        ``posted`` contains all events posted so far, by stream.
        """
        return

    def look(self, service: TemporaryService, outcome: Outcome, patience_s: float) -> None:
        """Collect the found results. Called when all posted events are matched."""
        ...


class Orders(Case):
    """Orders with early terminations, and patterns on one stream.

    Args:
        stream: The name of the stream.
        mark: The suffix of its patterns' names, which must be unique in a service with several such streams.
    """

    def __init__(self, stream: str = STREAM, mark: str = "") -> None:
        self._stream = stream
        self._texts = {
            f"{name}{mark}": text.replace(f"PATTERN {name} ", f"PATTERN {name}{mark} ", 1)
            for name, text in PATTERNS.items()
        }

    def events(self, plan: Plan) -> list[Event]:
        """About seventeen events of each order."""
        return orders(max(1, plan.events // 17), concurrent=50, seed=plan.seed, settings=OrderSettings(cancel=0.3))

    def stream_of(self, event: Event) -> str:
        """Return the stream of the orders."""
        return self._stream

    def expected(self, events: Sequence[Event], request: int) -> Outcome:
        """Return the expected alerts and early terminations, computed by shards in this process."""
        constraint_set = order_constraints()
        steps: list[Step] = [
            StreamOn(StreamDeclaration(name=self._stream, end_events=tuple(sorted(constraint_set.end_events)))),
            ConstraintsOn(name=self._stream, version=1, document=to_document(constraint_set)),
            *(PatternOn(name=name, version=1, text=text) for name, text in self._texts.items()),
            *(events[start : start + request] for start in range(0, len(events), request)),
        ]
        rows = run_inline(log_of(steps, stream=self._stream))
        return Outcome(
            expected=[body["id"] for body in bodies(rows, "alert")],
            expected_endings=[body["id"] for body in bodies(rows, "ending")],
            dead_letters=[f"expected: {body['reason']}" for body in bodies(rows, "dead-letter")],
        )

    def declare(self, service: TemporaryService) -> None:
        """Declare the stream, upload its constraints, and register its patterns."""
        constraint_set = order_constraints()
        service.client.post("/streams", {"name": self._stream, "end_events": sorted(constraint_set.end_events)})
        service.client.post("/constraints", {"stream": self._stream, **to_document(constraint_set)})
        for text in self._texts.values():
            service.client.post("/patterns", {"stream": self._stream, "text": text})

    def look(self, service: TemporaryService, outcome: Outcome, patience_s: float) -> None:
        """Collect alerts and early terminations."""
        client, stream = service.client, self._stream
        outcome.found = [alert["id"] for alert in client.pages("/alerts", stream=stream)]
        outcome.found_endings = [ending["id"] for ending in client.pages("/endings", stream=stream)]
        outcome.dead_letters += [letter["reason"] for letter in client.pages("/dead-letters", stream=stream)]


ORDERS: Case = Orders()


def disturbed(
    service: TemporaryService, plan: Plan, say: Callable[[str], None] = lambda _: None, case: Case = ORDERS
) -> Outcome:
    """Post events, kill processes, ask a question after each kill, and collect the results of all events.

    Args:
        service: The service whose processes are killed. If it has earlier events, all of them must be matched.
        plan: The parameters of the run.
        say: A function that is called with a line about each kill.
        case: The events and the expected results.
    """
    events = case.events(plan)
    outcome = case.expected(events, plan.request)
    case.declare(service)
    starts, before = _starts(service), service.client.get("/pipeline")["backlog"]["appended_volume"]["events"]
    begun, posted = time.monotonic(), Flag()
    gaps = ShardGaps(lambda: service.supervisor.redis_url)
    killer = Killer(service, plan, outcome, say, gaps)
    gaps.start()
    thread = Thread(target=killer.run, args=(posted,), name="killer")
    thread.start()
    asked, by_stream = 0, dict[str, list[Event]]()
    try:
        for start in range(0, len(events), plan.request):
            while killer.strikes < plan.kills * start // len(events) and thread.is_alive():
                Flag().wait(0.05)
            while asked < killer.strikes:
                asked += 1
                case.ask(service, by_stream, outcome)
            parts: dict[str, list[Event]] = {}
            for event in events[start : start + plan.request]:
                parts.setdefault(case.stream_of(event), []).append(event)
            for stream, part in parts.items():
                answer = send_events(service.client, stream, part, f"batch-{stream}-{start}")
                outcome.dead_letters += [f"rejected: {one}" for one in answer["rejected"]]
                by_stream.setdefault(stream, []).extend(part)
            Flag().wait(plan.every_s)
    finally:
        posted.set()
        thread.join()
        gaps.stop()
    outcome.gaps_s = dict(gaps.worst_s)
    require_ready(service.client, service.supervisor)
    case.ask(service, by_stream, outcome)
    await_drained(service, before + len(events), plan.patience_s)
    case.look(service, outcome, plan.patience_s)
    outcome.seconds = time.monotonic() - begun
    outcome.starts = {name: 1 + count - starts[name] for name, count in _starts(service).items()}
    return outcome


def _starts(service: TemporaryService) -> dict[str, int]:
    return {name: service.supervisor.starts(name) for name in ("api", "pipeline", "deliverer")}


class Killer:
    """Kills processes of one service, one after the other.

    Attributes:
        strikes: The number of finished kills, including kills that found no process.
    """

    def __init__(
        self, service: TemporaryService, plan: Plan, outcome: Outcome, say: Callable[[str], None], gaps: ShardGaps
    ) -> None:
        self._service = service
        self._plan = plan
        self._outcome = outcome
        self._say = say
        self._gaps = gaps
        self._random = random.Random(plan.seed)
        self._matched = service.client.get("/pipeline")["backlog"]["matched_volume"]["events"]
        self.strikes = 0

    def run(self, posted: Flag) -> None:
        """Kill processes as planned.

        Mostly wait until events were matched after the last kill, but sometimes kill earlier.

        Args:
            posted: The flag that is set when all events are posted. Planned kills continue after that.
        """
        begun = time.monotonic()
        for victim in self._plan.victims():
            if self._plan.is_patient:
                self._await_ready()
            elif self._random.random() < 0.8:
                self._await_progress(posted)
            Flag().wait(self._random.uniform(0.0, self._plan.pause_s))
            if self._strike(victim):
                self._outcome.killed[victim] += 1
                when = "while posting" if not posted.is_set() else "after posting"
                self._say(f"{time.monotonic() - begun:7.1f} s  {victim} killed {when}")
            else:
                self._outcome.spared.append(victim)
            self.strikes += 1

    def _strike(self, victim: str) -> bool:
        """Kill one process of a kind as soon as one is running. Return False if none was running in time."""
        deadline = time.monotonic() + self._plan.patience_s
        while time.monotonic() < deadline:
            if pids := self._pids(victim):
                self._gaps.cause = victim
                with suppress(ProcessLookupError):
                    self._strike_one(victim, self._random.choice(pids))
                    return True
            Flag().wait(0.1)
        return False

    def _strike_one(self, victim: str, pid: int) -> None:
        if victim != PAUSED:
            os.kill(pid, signal.SIGKILL)
            return
        os.kill(pid, signal.SIGSTOP)
        Flag().wait(PAUSE_S)
        os.kill(pid, signal.SIGCONT)

    def _await_ready(self) -> None:
        """Wait until every kind of process is running and the service is ready. Give up after ``patience_s``.

        This does not wait for progress: all posted events may be matched already, and more are posted only after the
        next kill.
        """
        client, deadline = self._service.client, time.monotonic() + self._plan.patience_s
        while time.monotonic() < deadline:
            Flag().wait(_SETTLED_S)
            try:
                if all(map(self._pids, VICTIMS)) and missing_part(client) is None:
                    return
            except ForestallError:
                pass

    def _await_progress(self, posted: Flag) -> None:
        """Wait until more events are matched than at the last call, or all of them. Give up after ``patience_s``."""
        client, deadline = self._service.client, time.monotonic() + self._plan.patience_s
        while time.monotonic() < deadline:
            try:
                backlog = client.get("/pipeline")["backlog"] if missing_part(client) is None else None
            except ForestallError:
                backlog = None
            if backlog is not None:
                matched = backlog["matched_volume"]["events"]
                if matched > self._matched or (posted.is_set() and backlog["waiting_volume"]["events"] == 0):
                    self._matched = matched
                    return
            Flag().wait(0.2)

    def _pids(self, victim: str) -> list[int]:
        supervisor = self._service.supervisor
        if victim == "redis":
            record = supervisor.settings.data_dir / "redis" / "server.json"
            return [int(orjson.loads(record.read_bytes())["pid"])] if record.exists() else []
        if victim in ("api", "deliverer"):
            pid = supervisor.pid(victim)
            return [] if pid is None else [pid]
        driver = supervisor.pid("pipeline")
        if driver is None or victim == "driver":
            return [] if driver is None else [driver]
        machines = [child for child in children_of(driver) if name_of(child) == "java"]
        if victim == "jvm":
            return machines
        return workers_of(driver)


def workers_of(driver: int) -> list[int]:
    """Return the ids of Spark's Python workers.

    The daemon that starts the workers is a child of Java, or was prepared by the driver.
    """
    children = children_of(driver)
    machines = [child for child in children if name_of(child) == "java"]
    daemons = {daemon for jvm in machines for daemon in children_of(jvm)}.union(children).difference(machines)
    return [worker for daemon in sorted(daemons) for worker in children_of(daemon)]


def children_of(pid: int) -> list[int]:
    """Return the ids of the running child processes of a process."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except (FileNotFoundError, ProcessLookupError):
                continue
            found += [int(folder.name)] if parent == str(pid) and state != "Z" else []
    return found


def name_of(pid: int) -> str:
    """Return the command name of a process. If the process has ended, return the empty text."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def await_drained(service: TemporaryService, events: int, patience_s: float) -> None:
    """Wait until the pipeline has received at least ``events`` events and matched all of them.

    After the timeout, this returns without an error, because the later comparison fails.
    """
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        backlog = service.client.get("/pipeline")["backlog"]
        if backlog["waiting_volume"]["events"] == 0 and backlog["appended_volume"]["events"] >= events:
            return
        Flag().wait(0.2)


def main(case: Case = ORDERS, description: str | None = __doc__) -> None:
    """Print the kills and the results.

    Raises:
        SystemExit: Results were lost or emitted twice.
    """
    parser = ArgumentParser(description=description)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--request", type=int, default=200, help="events of a request")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--pause", type=float, default=3.0, help="longest random pause before a kill, seconds")
    parser.add_argument("--patience", type=float, default=600.0, help="for the rest, seconds")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--only", choices=(*VICTIMS, PAUSED), action="append", help="kill these processes and no others"
    )
    parser.add_argument("--patient", action="store_true", help="kill only once the service is ready again")
    parser.add_argument("--every", type=float, default=0.0, help="seconds between two requests")
    parser.add_argument("--runtime", choices=("continuous", "micro-batch"), default="continuous")
    parser.add_argument("--master", default="", help="where Spark runs; as the service has it, if left out")
    wanted = parser.parse_args()
    settings = {**SETTINGS, "RUNTIME": wanted.runtime} | ({"SPARK_MASTER": wanted.master} if wanted.master else {})
    plan = Plan(
        events=wanted.events,
        request=wanted.request,
        kills=wanted.kills,
        pause_s=wanted.pause,
        patience_s=wanted.patience,
        seed=wanted.seed,
        kinds=wanted.only or VICTIMS,
        is_patient=wanted.patient,
        every_s=wanted.every,
    )
    with TemporaryDirectory(prefix="forestall-chaos-") as folder, running(Path(folder), print, settings) as service:
        outcome = disturbed(service, plan, lambda text: print(text, flush=True), case)
    killed = ", ".join(f"{count} {victim}" for victim, count in outcome.killed.most_common())
    print(f"at least {plan.events:,} events, {outcome.killed.total()} kills ({killed}) in {outcome.seconds:.0f} s")
    print(f"  alerts: {len(outcome.expected):,} expected, {len(outcome.found):,} found; starts: {outcome.starts}")
    print(f"  early endings: {len(outcome.expected_endings):,} expected, {len(outcome.found_endings):,} found")
    for what, (expected, found) in outcome.others.items():
        print(f"  {what}: {len(expected):,} expected, {len(found):,} found")
    gaps = ", ".join(f"{victim} {gap_s:.2f} s" for victim, gap_s in sorted(outcome.gaps_s.items()))
    print(f"  worst gap of a shard while a task lives, after kills of: {gaps}")
    if outcome.faults:
        raise SystemExit("faults: " + "; ".join(outcome.faults))
    print("  nothing lost, nothing twice, no dead letters")


if __name__ == "__main__":
    main()
