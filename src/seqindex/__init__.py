"""Exact theory and fast simulation of one-pass spherical SGD on sequence single-index (SSI) targets."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqindex.model.attention import Attention as Attention
    from seqindex.model.encoded_target import EncodedTarget as EncodedTarget
    from seqindex.model.encoding import Encoding as Encoding
    from seqindex.model.encoding import InjectedEncoding as InjectedEncoding
    from seqindex.model.encoding import OppositeEncoding as OppositeEncoding
    from seqindex.model.encoding import RandomEncoding as RandomEncoding
    from seqindex.model.encoding import SinusoidalEncoding as SinusoidalEncoding
    from seqindex.model.link import Target as Target
    from seqindex.model.named import NAMED_TARGETS as NAMED_TARGETS
    from seqindex.model.named import named_target as named_target
    from seqindex.model.problem import Problem as Problem
    from seqindex.model.reduction import Projection as Projection
    from seqindex.model.reduction import Reduction as Reduction
    from seqindex.model.target import PositionalSemanticTarget as PositionalSemanticTarget
    from seqindex.model.tied import TiedNetwork as TiedNetwork
    from seqindex.model.tied import random_weights as random_weights
    from seqindex.model.untied import UntiedNetwork as UntiedNetwork
    from seqindex.order import Order as Order
    from seqindex.outcome import Outcome as Outcome
    from seqindex.sgd.best_rate import best_of_rates as best_of_rates
    from seqindex.sgd.best_rate import measured_best_rate as measured_best_rate
    from seqindex.sgd.hitting import hitting_time as hitting_time
    from seqindex.sgd.hitting import recovery_time as recovery_time
    from seqindex.sgd.run import Interrupted as Interrupted
    from seqindex.sgd.run import sgd as sgd
    from seqindex.sgd.scaling import growth_law as growth_law
    from seqindex.sgd.scaling import nearest_law as nearest_law
    from seqindex.sgd.scaling import power_law as power_law
    from seqindex.sgd.start import Start as Start
    from seqindex.sgd.stop import Near as Near
    from seqindex.sgd.survival import median_ratio as median_ratio
    from seqindex.sgd.survival import median_time as median_time
    from seqindex.sgd.survival import restricted_mean as restricted_mean
    from seqindex.sgd.survival import survival_curve as survival_curve
    from seqindex.study.run import open_study as open_study
    from seqindex.theory.boundaries import phase_boundary as phase_boundary
    from seqindex.theory.critical import critical_points as critical_points
    from seqindex.theory.diffusion import linear_noise as linear_noise
    from seqindex.theory.escape import escape_order as escape_order
    from seqindex.theory.escape import flatness as flatness
    from seqindex.theory.exponents import sequence_information_exponent as sequence_information_exponent
    from seqindex.theory.finite_size import semantic_probability as semantic_probability
    from seqindex.theory.flow import gradient_flow as gradient_flow
    from seqindex.theory.gain import predicted_gain as predicted_gain
    from seqindex.theory.langevin import langevin as langevin
    from seqindex.theory.phases import phase_diagram as phase_diagram
    from seqindex.theory.rates import predicted_rates as predicted_rates
    from seqindex.theory.recovery import predicted_recovery as predicted_recovery
    from seqindex.theory.risk import PopulationRisk as PopulationRisk
    from seqindex.theory.two_phases import two_phases as two_phases

__version__ = "0.1.0"

_HOMES = {
    "Attention": "seqindex.model.attention",
    "EncodedTarget": "seqindex.model.encoded_target",
    "Encoding": "seqindex.model.encoding",
    "InjectedEncoding": "seqindex.model.encoding",
    "OppositeEncoding": "seqindex.model.encoding",
    "RandomEncoding": "seqindex.model.encoding",
    "SinusoidalEncoding": "seqindex.model.encoding",
    "NAMED_TARGETS": "seqindex.model.named",
    "named_target": "seqindex.model.named",
    "Problem": "seqindex.model.problem",
    "Projection": "seqindex.model.reduction",
    "Reduction": "seqindex.model.reduction",
    "PositionalSemanticTarget": "seqindex.model.target",
    "Target": "seqindex.model.link",
    "TiedNetwork": "seqindex.model.tied",
    "random_weights": "seqindex.model.tied",
    "UntiedNetwork": "seqindex.model.untied",
    "Order": "seqindex.order",
    "Outcome": "seqindex.outcome",
    "PopulationRisk": "seqindex.theory.risk",
    "critical_points": "seqindex.theory.critical",
    "escape_order": "seqindex.theory.escape",
    "flatness": "seqindex.theory.escape",
    "gradient_flow": "seqindex.theory.flow",
    "semantic_probability": "seqindex.theory.finite_size",
    "langevin": "seqindex.theory.langevin",
    "linear_noise": "seqindex.theory.diffusion",
    "two_phases": "seqindex.theory.two_phases",
    "predicted_recovery": "seqindex.theory.recovery",
    "predicted_gain": "seqindex.theory.gain",
    "predicted_rates": "seqindex.theory.rates",
    "sequence_information_exponent": "seqindex.theory.exponents",
    "phase_boundary": "seqindex.theory.boundaries",
    "phase_diagram": "seqindex.theory.phases",
    "open_study": "seqindex.study.run",
    "sgd": "seqindex.sgd",
    "Interrupted": "seqindex.sgd.run",
    "hitting_time": "seqindex.sgd.hitting",
    "recovery_time": "seqindex.sgd.hitting",
    "best_of_rates": "seqindex.sgd.best_rate",
    "measured_best_rate": "seqindex.sgd.best_rate",
    "median_time": "seqindex.sgd.survival",
    "median_ratio": "seqindex.sgd.survival",
    "restricted_mean": "seqindex.sgd.survival",
    "survival_curve": "seqindex.sgd.survival",
    "growth_law": "seqindex.sgd.scaling",
    "nearest_law": "seqindex.sgd.scaling",
    "power_law": "seqindex.sgd.scaling",
    "Start": "seqindex.sgd.start",
    "Near": "seqindex.sgd.stop",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import seqindex`` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'seqindex' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    # The package ``seqindex.sgd`` is itself callable, since importing it binds this very name.
    value = home if home.__name__ == f"seqindex.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *globals()])
