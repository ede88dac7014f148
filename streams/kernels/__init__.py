"""Compiled kernels over bytes, and how kernels are compiled and cached."""
