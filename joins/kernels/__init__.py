"""Compiled kernels of joins."""
