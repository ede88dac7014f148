"""Simulated traces and streams of a workflow, with time, attributes and noise."""

from workflows.simulation.noise import Noise, NoiseCounts, NoiseSettings
from workflows.simulation.playing import playable
from workflows.simulation.sampling import sample_trace
from workflows.simulation.settings import SimulationSettings
from workflows.simulation.stream import simulate
from workflows.simulation.timing import has_durations, sample_timed
from workflows.simulation.walk import AutomatonWalk
