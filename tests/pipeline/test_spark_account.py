from pipeline.spark.account import summary_of


def test_the_cause_is_picked_out_of_spark_s_account():
    told = "Traceback:\n  File x\npipeline.errors.FeedDamaged: it is gone: really\nJVM stacktrace:\nat java"
    assert summary_of(RuntimeError(told)) == "it is gone: really"
    assert summary_of(RuntimeError("one\ntwo")) == "two"
    assert summary_of(RuntimeError("")) == "RuntimeError"
