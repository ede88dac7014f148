"""Retractions in joins: the retracted event leaves the join, and results that contain it are retracted."""

from joins.retracting.beside import Beside
from joins.retracting.retractions import Retractions
