"""The Spark job of a run over past events: history in, rounds of shards, results out."""
