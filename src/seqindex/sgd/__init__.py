"""Simulation: the exact reduced chain and explicit SGD."""
