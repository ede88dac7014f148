"""Files that processes keep on disk: compiled kernels with their folder and lock, spilled rows, replaced files."""
