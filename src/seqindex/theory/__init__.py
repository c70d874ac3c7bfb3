"""Deterministic predictions: exponents, population risk, flow, rates and phases."""
