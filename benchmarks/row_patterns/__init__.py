"""SQL row patterns: their speed, and a comparison with Flink SQL."""
