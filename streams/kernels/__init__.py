"""Kernels: free functions over bytes."""
