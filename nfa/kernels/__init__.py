"""Kernels: free functions over arrays."""
