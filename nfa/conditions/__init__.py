"""Conditions: values with three-valued logic, evaluated over columns, between the steps of a run, and on a match."""
