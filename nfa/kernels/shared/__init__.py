"""Kernels of the shared-node engine."""
