"""Finds the constraints that hold on every trace of a model, and the origin of each constraint in the model."""
