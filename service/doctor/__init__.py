"""What ``forestall doctor`` looks at: this machine, the settings, Redis, Spark, and a service that runs.

Each look gives findings: what was looked at, whether it is well, what was found and what to do. Nothing is changed, and
what cannot be looked at because something else is missing is left out.
"""

from service.doctor.examination import examine
from service.doctor.findings import Finding, Verdict, worst
from service.doctor.kernels import EVERYTHING, size_of
from service.doctor.server import at_risk

__all__ = ["EVERYTHING", "Finding", "Verdict", "at_risk", "examine", "size_of", "worst"]
