import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import orjson
import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from pipeline.errors import ClusterUnready, QueryFailed
from pipeline.spark.cluster import (
    NEEDED,
    ClusterOptions,
    cluster_settings,
    faults_of,
    is_local,
    require_master,
    starting_on,
)
from streams import ConstraintsOn, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step, event, log_of, run_inline
from tests.builders.spark import short_lived

SHARDS = 4
ROUNDS = "AAUAUAUUAUAALUAUAUAAUUUA"
OPTIONAL = {"pandas", "rich"}  # other packages import them where they are
PROGRAM = Path(__file__).with_name("cluster_process.py")


def long_log(rounds=ROUNDS):
    steps: list[Step] = [
        StreamOn(StreamDeclaration(name="orders", end_events=("End",))),
        ConstraintsOn(name="rules", version=1, document={"exclusive": [["L", "U"]]}),
        PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u) WITHIN 100 s"),
    ]
    for round_, event_type in enumerate(rounds):
        steps.append([event(20 * round_ + key, event_type, f"k{key}") for key in range(20)])
    return log_of(steps, shards=SHARDS)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A master and two workers with a core each, as processes that are gone at the end, with all that they started."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.environment = environment | {
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_DAEMON_JAVA_OPTS": short_lived(),
        }
        self.port = free_port()
        self.master = f"spark://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.ends = ExitStack()

    def start(self, workers=2):
        master = self.spawn("master", "master.Master", "--port", str(self.port))
        while not is_taken(self.port):
            assert master.poll() is None, (self.folder / "master.log").read_text()
            time.sleep(0.1)
        for _ in range(workers):
            self.join()

    def join(self):
        """Start another worker."""
        number = len(self.workers)
        place = str(self.folder / f"work-{number}")
        words = ("--cores", "1", "--memory", "1g", "--work-dir", place, self.master)
        self.workers.append(self.spawn(f"worker-{number}", "worker.Worker", *words))

    def busy(self, server):
        """The workers whose processes have matched."""
        matchers = {orjson.loads(text)[1] for text in server.client.smembers("processes")}
        return [worker for worker in self.workers if matchers & set(descendants(worker.pid))]

    def spawn(self, name, java_class, *words):
        program = Path(self.environment["SPARK_HOME"], "bin", "spark-class")
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [program, f"org.apache.spark.deploy.{java_class}", *place, *words],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.ends.callback(end, process)
        return process

    def logs(self):
        paths = [self.folder / "driver.log", *self.folder.glob("work-*/*/*/stderr")]
        return "\n".join(f"--- {path}\n{path.read_text()[-1_500:]}" for path in paths)


def is_taken(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def end(process):
    """Kill what a process started, and itself."""
    for child in [process.pid, *descendants(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    process.wait()


def parents():
    """Parent by process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return found


def descendants(ancestor):
    above = parents()

    def is_below(pid):
        while pid in above:
            pid = above[pid]
            if pid == ancestor:
                return True
        return False

    return [pid for pid in above if is_below(pid)]


@contextmanager
def running_cluster(folder, environment, workers=2):
    cluster = Cluster(folder, environment)
    with cluster.ends:
        cluster.start(workers)
        yield cluster


def start_job(server, folder, master, environment, runtime):
    words = [sys.executable, PROGRAM, folder / "data", server.url, str(SHARDS), master, folder, runtime]
    with (folder / "driver.log").open("wb") as log:
        return subprocess.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)


@pytest.fixture
def environment(kernels):
    return os.environ | {"NUMBA_CACHE_DIR": kernels, "SPARK_LOCAL_IP": "127.0.0.1"}


def stored_rows(server):
    return {row_id.decode(): orjson.loads(text) for row_id, text in server.client.hgetall("rows").items()}


def rows_without_spark(logs):
    return {row.id: [row.kind, row.stream, row.shard, row.body.decode()] for row in run_inline(logs)}


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.slow
def test_a_worker_joins_and_another_dies_while_events_flow(own_server, tmp_path, environment):
    logs = long_log(20 * ROUNDS)
    parts = [dict(zip(logs, entries, strict=True)) for entries in zip(*logs.values(), strict=True)]

    def append_one():
        assert driver.poll() is None, cluster.logs()
        time.sleep(60 / len(parts))  # slower and slower: a machine that is busy with other work needs minutes
        own_server.append({shard: [entry] for shard, entry in parts.pop(0).items()})

    with running_cluster(tmp_path, environment, workers=1) as cluster:
        driver = start_job(own_server, tmp_path, cluster.master, environment, "continuous")
        cluster.ends.callback(end, driver)
        for workers in (1, 2):
            while len(cluster.busy(own_server)) < workers:
                append_one()
            if workers == 1:
                cluster.join()
        end(cluster.workers[0])
        matched = len(stored_rows(own_server))
        own_server.client.delete("processes")
        while not cluster.busy(own_server) or len(stored_rows(own_server)) == matched:
            append_one()
        own_server.append({shard: [part[shard] for part in parts] for shard in logs})
        own_server.client.set("complete", 1)
        assert driver.wait(timeout=900) == 0, cluster.logs()
    assert stored_rows(own_server) == rows_without_spark(logs)


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.deep  # the default runtime each day, above
def test_both_workers_match_and_the_death_of_one_changes_nothing(own_server, tmp_path, environment):
    logs = long_log()
    own_server.append(logs)
    with running_cluster(tmp_path, environment) as cluster:
        driver = start_job(own_server, tmp_path, cluster.master, environment, "micro-batch")
        cluster.ends.callback(end, driver)
        while len(cluster.busy(own_server)) < 2:
            assert driver.poll() is None, cluster.logs()
            time.sleep(0.1)
        batches = int(own_server.client.get("batches") or 0)
        end(cluster.workers[0])
        assert driver.wait(timeout=900) == 0, cluster.logs()
        assert int(own_server.client.get("batches")) > batches + 1
    assert stored_rows(own_server) == rows_without_spark(logs)


@pytest.mark.parametrize(
    ("master", "is_here"),
    [("local", True), ("local[*]", True), ("local[2,3]", True), ("local-cluster[2,1,1024]", False), ("yarn", False)],
)
def test_which_masters_are_local(master, is_here):
    assert is_local(master) == is_here


def test_a_master_that_does_not_answer_is_named():
    with (
        pytest.raises(ClusterUnready, match=r"spark://nowhere:7077 does not answer"),
        starting_on("spark://nowhere:7077"),
    ):
        raise Py4JError


@pytest.mark.parametrize("error", [Py4JError("no answer"), PySparkRuntimeError("exited"), ConnectionRefusedError()])
def test_a_process_of_spark_that_dies_while_it_starts_is_named(error):
    with pytest.raises(QueryFailed, match="Spark did not start"), starting_on("local[2]"):
        raise error


def test_a_standalone_master_that_is_dead_is_named_at_once():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{probe.getsockname()[1]},nowhere.invalid:7077,nonsense"
        with pytest.raises(
            ClusterUnready, match=r"no Spark master at spark://127.*refused.*correct FORESTALL_SPARK_MA"
        ):
            require_master(master)
        probe.listen()
        require_master(master)
    require_master("local[2]")


def test_machines_get_the_packages_and_the_place_of_kernels(tmp_path):
    settings = cluster_settings(ClusterOptions(driver_host="driver", bind_address="0.0.0.0"), tmp_path)
    archive, _, name = settings["spark.archives"].partition("#")
    assert Path(archive.removeprefix("file://")).parent == tmp_path
    assert settings["spark.executorEnv.PYTHONPATH"] == name
    assert (settings["spark.driver.host"], settings["spark.driver.bindAddress"]) == ("driver", "0.0.0.0")


def test_what_a_machine_lacks_is_said_with_its_name():
    needed = {"numpy": "2.3.1", "pyspark": "4.3.0", "redis": "6.1.0"}
    good = {"numpy": "2.0.0", "pyspark": "4.3.1", "redis": "6.4.0"}
    reports = [
        ("one", "/usr/bin/python3", good),
        ("two", "/usr/bin/python3", {**good, "redis": "", "pyspark": ""}),
        ("three", "/opt/python", {**good, "numpy": "1.26.4", "pyspark": "4.2.0"}),
        ("three", "/opt/python", {**good, "numpy": "1.26.4", "pyspark": "4.2.0"}),
    ]
    assert faults_of(reports, needed) == [
        "three: /opt/python has numpy 1.26.4, and the driver 2.3.1; install numpy==2.3.1",
        "three: /opt/python has pyspark 4.2.0, and the driver 4.3.0; install pyspark==4.3.0",
        "two: /usr/bin/python3 has no package redis; install redis==6.1.0",
    ]


def test_all_packages_that_the_job_imports_are_looked_for():
    program = "import sys, pipeline.runs.in_spark, pipeline.job, pipeline.warmup; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    named = packages_distributions()
    always = [text for text in requires("forestall") or () if "extra ==" not in text]
    wanted = {text.lower() for text in re.findall(r"^[\w-]+", "\n".join(always), re.MULTILINE)}
    assert {name.lower() for module in loaded for name in named.get(module, ())} & wanted <= {*NEEDED, *OPTIONAL}
