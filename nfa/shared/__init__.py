"""The shared-node engine, for patterns whose partial matches need no memory of their own."""
