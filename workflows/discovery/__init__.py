"""Constraint discovery: mines constraints from a past log, and counts the violations of constraints in a log.

Purpose: find the constraints that the traces of a log keep, each with its support and confidence. For any constraint
set, count the past traces that break each part.

Promises: a constraint with confidence 1 holds on every trace of the log. Counts are exact. The order of the traces does
not matter.
"""
