"""Targets, students, encodings, reductions and losses: everything that acts on local fields."""
