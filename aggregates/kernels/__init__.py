"""Kernels of aggregates: compiled functions over arrays of events and groups."""
