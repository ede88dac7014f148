"""Comparison of measurements with those of the newest release: counts that differ, ratios that lost a fifth."""
