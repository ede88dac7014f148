"""Kernels of the run engine."""
