"""Kernels that run for each arrival of an unsynchronised join."""
