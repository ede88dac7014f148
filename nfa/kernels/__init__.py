"""The matcher's kernels: compiled functions over arrays."""
