"""SQL row patterns: their speed, and beside Flink SQL."""
