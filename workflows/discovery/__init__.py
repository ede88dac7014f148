"""Constraint discovery: mines constraints from a past log, and counts violations in a log.

Purpose: find the constraints that the traces of a log keep, each with its support and confidence; for any constraint
set, count the past traces that break each part. Promises: a constraint found at confidence 1 holds on every trace of
the log, counts are exact, and the order of the traces does not matter.
"""
