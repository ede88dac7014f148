"""What every test gets: hypothesis without deadlines, as the first use of a kernel compiles it."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("forestall", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("forestall")
