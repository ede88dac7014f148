"""Distance of the engine from the limits of the machine, and a breakdown of its time."""
