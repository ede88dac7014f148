import pytest
from pyspark.errors import PySparkException

from pipeline.spark.account import again_if_lost, lost_source, summary_of


def test_the_cause_is_picked_out_of_spark_s_account():
    told = "Traceback:\n  File x\npipeline.errors.FeedDamaged: it is gone: really\nJVM stacktrace:\nat java"
    assert summary_of(RuntimeError(told)) == "it is gone: really"
    assert summary_of(RuntimeError("one\ntwo")) == "two"
    assert summary_of(RuntimeError("")) == "RuntimeError"


def test_a_lost_process_of_the_source_is_known_by_spark_s_stack():
    error = RuntimeError("[STREAM_FAILED] terminated with exception:  SQLSTATE: XXKST")
    assert not lost_source(error)
    stack = "java.io.EOFException\n\tat PythonStreamingSourceRunner.latestOffset(PythonStreamingSourceRunner.scala:235)"
    vars(error)["_stackTrace"] = stack
    assert lost_source(error)
    assert summary_of(error).startswith("the Python process in which Spark plans micro-batches died")
    vars(error)["_stackTrace"] = "PythonStreamingSourceRunner: pipeline.errors.LogDamaged: entries are gone"
    assert not lost_source(error)


def test_what_is_planned_in_a_process_that_dies_is_planned_again():
    calls = []

    def plan(deaths, stack="java.io.EOFException at PythonPlannerRunner"):
        calls.append(1)
        if len(calls) <= deaths:
            error = PySparkException("it died")
            vars(error)["_stackTrace"] = stack
            raise error
        return "planned"

    assert (again_if_lost(lambda: plan(2)), len(calls)) == ("planned", 3)
    calls.clear()
    with pytest.raises(PySparkException):
        again_if_lost(lambda: plan(3))
    calls.clear()
    with pytest.raises(PySparkException):
        again_if_lost(lambda: plan(1, "AnalysisException: no such source"))
    assert len(calls) == 1
