"""Hermite bases, expectation rules and compiled elementary functions for Gaussian fields."""
