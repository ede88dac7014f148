"""Conditions in three-valued logic, evaluated over columns of a batch, between the steps of a run, and on a match."""
