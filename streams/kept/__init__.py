"""Files that a process makes from the code and keeps for the next one: the folder, the lock, the digest of kernels."""
