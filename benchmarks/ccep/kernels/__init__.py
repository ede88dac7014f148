"""Loops over every event of a workload: writing it, and replaying which pattern states it occupies."""
