"""What a process makes of the code and keeps for the next: the folder, the lock, the name of compiled kernels."""
