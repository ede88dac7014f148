"""Compiled kernels over bytes, and the compilation and caching of kernels."""
