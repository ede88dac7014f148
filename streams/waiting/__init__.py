"""How far an input's keys come out of order, measured by all shards, and the keys that are finished by that."""
