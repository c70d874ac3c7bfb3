"""Drawings of what the layers below return."""
