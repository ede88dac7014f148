"""Comparison of measurements with those of the newest release.

It reports counts that differ and ratios that got worse.
"""
