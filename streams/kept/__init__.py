"""Files that processes keep: compiled kernels with their folder and lock, spilled rows, files replaced as a whole."""
