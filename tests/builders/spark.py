"""For tests: writes the archive of Java classes before many processes start Spark at once.

python -m tests.builders.spark
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from pipeline.spark.java import archive_options, find_java
from pipeline.spark.session import SessionOptions, build_session, end_session


def main() -> None:
    """Load the parts of Spark that the job, feeds and backtests use; the Java process archives them at its end.

    Without it, each of the first processes reads all classes for itself, and each of the first backtests writes the
    archive. An existing archive is left unchanged.
    """
    with TemporaryDirectory(prefix="forestall-classes-") as scratch:
        session = build_session(SessionOptions(data_folder=Path(scratch), master="local[2]", writes_archive=True))
        try:
            session.sparkContext.parallelize(range(2), 2).map(str).collect()
            rows = session.readStream.format("rate").load()
            writer = rows.mapInArrow(_same, rows.schema).writeStream.option("checkpointLocation", f"{scratch}/points")
            query = writer.trigger(availableNow=True).foreachBatch(lambda batch, _: batch.toArrow()).start()
            query.awaitTermination()
        finally:
            gateway = session.sparkContext._gateway
            assert gateway is not None
            java = gateway.proc
            end_session(session)
            java.stdin.close()  # Java ends, and writes the archive
            java.wait()


def short_lived() -> str:
    """Options of a Java process of a cluster that lives for seconds."""
    return f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {archive_options(find_java()[1], writes=False)}"


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    main()
