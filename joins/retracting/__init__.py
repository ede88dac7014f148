"""Retractions in joins: the retracted event is removed from the join, and results that contain it are retracted."""

from joins.retracting.beside import KeyState
from joins.retracting.retractions import Retractions
