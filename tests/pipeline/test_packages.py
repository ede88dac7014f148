import subprocess
import sys
import zipfile

from house import PACKAGES
from pipeline.spark.packages import SHIPPED, pack

PROGRAM = """
import sys
import pipeline.runs.in_spark
import pipeline.job
import pipeline.warmup
import shards.kinds.joins.host
import shards.kinds.patterns.host

unpacked, *own = sys.argv[1:]
loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in own}
print(*sorted({name.partition(".")[0] for name, module in loaded.items() if module.__file__.startswith(unpacked)}))
print(*sorted(name for name, module in loaded.items() if not module.__file__.startswith(unpacked)))
"""


def test_equal_packages_make_one_archive(tmp_path):
    first = pack(tmp_path)
    written = first.stat().st_mtime_ns
    assert pack(tmp_path) == first
    assert first.stat().st_mtime_ns == written
    assert list(tmp_path.iterdir()) == [first]


def test_an_archive_holds_all_that_the_job_imports(tmp_path):
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(pack(tmp_path)) as archive:
        archive.extractall(unpacked)
    assert {path.name for path in unpacked.iterdir()} == set(SHIPPED)
    assert not list(unpacked.glob("**/__pycache__"))
    environment = {"PYTHONPATH": str(unpacked), "PYTHONSAFEPATH": "1"}
    words = [sys.executable, "-c", PROGRAM, str(unpacked), *PACKAGES]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    inside, outside = done.stdout.splitlines() or [done.stderr, ""]
    assert outside == ""
    assert {"joins", "nfa", "pipeline", "shards", "streams"} <= set(inside.split())


def test_the_source_is_imported_without_the_engine():
    """Spark starts several processes for each query only to import it."""
    words = [sys.executable, "-c", "import sys, pipeline.sources; print(*sys.modules)"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert {"numba", "lark", "nfa", "constraints", "workflows"} & set(done.stdout.split()) == set()
