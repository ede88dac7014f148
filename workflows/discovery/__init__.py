"""Constraint discovery: constraints mined from a past log, and violations counted in one.

Purpose: the constraints that the traces of a log keep, each with its support and confidence, and for any constraint set
how many past traces break each part. Promises: a constraint found at confidence 1 holds on every trace of the log,
counts are exact, and the order of the traces does not matter.
"""
