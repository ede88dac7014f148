"""Simulates traces and streams of a workflow, with time, attributes and noise."""

from workflows.simulation.noise import Noise, NoiseCounts, NoiseSettings
from workflows.simulation.sampling import has_durations, sample_timed, sample_trace
from workflows.simulation.stream import SimulationSettings, simulate
from workflows.simulation.walk import AutomatonWalk
