"""The experiments of the papers, each a package: ``scripts/literature bench NAME``."""
