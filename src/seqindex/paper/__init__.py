"""The paper's figures and claims, one module a figure."""
