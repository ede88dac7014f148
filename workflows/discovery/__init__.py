"""Constraints from what happened: mined from a past log, and counted over one.

Purpose: the constraints that the traces of a log keep, each with its support and confidence, and for any constraint set
how many past traces break each part. Promises: what is found at confidence 1 holds on every trace of the log, counts
are exact, and the order of the traces does not matter.
"""
