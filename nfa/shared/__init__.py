"""The shared-node engine: patterns whose partial matches need no memory of their own."""
