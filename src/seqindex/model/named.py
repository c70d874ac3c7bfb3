"""Named link functions: those of the paper and of its released code, and what tests and examples use, as one table."""

from __future__ import annotations

from dataclasses import dataclass, field

from seqindex import check
from seqindex.model.link import Target

PAPER = "the paper"
CODE = "the paper's released code"


@dataclass(frozen=True)
class NamedTarget:
    """One row of the table.

    Attributes:
        text: the expression; {others} stands for (1+z2)*...*(1+zL).
        description: what it is for.
        source: where it comes from.
        parameters: values of further names in the text where the caller gives none.
    """

    text: str
    description: str
    source: str
    parameters: dict[str, float] = field(default_factory=dict)

    def expression(self, length: int) -> str:
        """The text at a sequence length.

        Example:
            >>> NAMED_TARGETS["complete_staircase"].expression(3)
            'z1*(1+z2)*(1+z3)'
        """
        others = "*".join(f"(1+z{position})" for position in range(2, length + 1)) or "1"
        return self.text.replace("{others}", others)


NAMED_TARGETS: dict[str, NamedTarget] = {
    # Sums: one direction of the tokens, exponent 1.
    "sum": NamedTarget("sum(z)", "sum of the fields", CODE),
    "mean": NamedTarget("sum(z)/L", "their mean", CODE),
    "inversesqrtsum": NamedTarget("sum(z)/sqrt(L)", "their sum with unit variance: tied gains L at one rate", CODE),
    "sqrtsum": NamedTarget("sqrt(L)*sum(z)", "their sum times sqrt(L)", CODE),
    "2sum": NamedTarget("z1 + z2", "two informative tokens", CODE),
    # One token: what normalising the rows of an untied network costs.
    "z1": NamedTarget("z1", "one informative token", CODE),
    "sqrtz1": NamedTarget("sqrt(L)*z1", "one informative token, times sqrt(L)", CODE),
    # Products: exponent equal to the number of factors.
    "2product": NamedTarget("z1*z2", "exponent 2 from two tokens", CODE),
    "3product": NamedTarget("z1*z2*z3", "exponent 3 from three tokens", CODE),
    "product": NamedTarget("prod(z)", "exponent L", PAPER),
    "He2product": NamedTarget("prod(He2(z))", "exponent 2 L: a product adds the exponents of its factors", PAPER),
    # Sums of one Hermite polynomial: exponent k at any length.
    "H2sum": NamedTarget("sum(h2(z))", "exponent 2, normalised He2 of each field", CODE),
    "inversesqrtH2sum": NamedTarget("sum(h2(z))/sqrt(L)", "H2sum with unit variance", CODE),
    "sqrtH2sum": NamedTarget("sqrt(L)*sum(h2(z))", "H2sum times sqrt(L)", CODE),
    "inverseH2sum": NamedTarget("sum(h2(z))/L", "H2sum over L", CODE),
    "linearH2sum": NamedTarget("L*sum(h2(z))", "H2sum times L", CODE),
    "He2sum": NamedTarget("sum(He2(z))", "exponent 2, not normalised", PAPER),
    "He3sum": NamedTarget("sum(He3(z))", "exponent 3: hidden from even students", PAPER),
    "He4sum": NamedTarget("sum(He4(z))", "exponent 4 (figures 1 and 2)", PAPER),
    # Differences: nothing for a tied network to see.
    "2difference": NamedTarget("z1 - z2", "odd and antisymmetric", CODE),
    "2squaredifference": NamedTarget("(z1**2 - z2**2)/sqrt(2)", "even and antisymmetric", CODE),
    # Staircases: each step makes the next one visible.
    "basic_staircase": NamedTarget("z1 + z1*z2", "two steps", CODE),
    "sqrtbasic_staircase": NamedTarget("sqrt(L)*(z1 + z1*z2)", "two steps, times sqrt(L)", CODE),
    "sqrtdouble_staircase": NamedTarget("sqrt(L)*(z1 + z1*z2 + z1*z2*z3)", "three steps, times sqrt(L)", CODE),
    "complete_staircase": NamedTarget("z1*{others}", "one step a token", CODE),
    # Sums of products.
    "He1He4_He2He2": NamedTarget("He1(z1)*He4(z2) + He2(z3)*He2(z4)", "exponent 4 (section 2)", PAPER),
    "figure2": NamedTarget("4/3 + He4(z1) + 2*He4(z2)", "exponent 4, flatness 2 with an encoding (figure 2)", PAPER),
    "product_and_He2sum": NamedTarget(
        "a*z1*z2 + b*sum(He2(z))", "exponent 2 with two weights", "this package", {"a": 1.0, "b": 0.2}
    ),
}
"""Link functions by name; those of the released code keep its names."""


def named_target(name: str, length: int, **parameters: float) -> Target:
    """A target of the table ``NAMED_TARGETS``.

    Args:
        name: its name there.
        length: sequence length L.
        parameters: values of names in its text, in place of those of the table.

    Raises:
        ValueError: a name that is not in the table, or a length below the positions that the text names.

    Example:
        >>> named_target("basic_staircase", length=2)
        Target('z1 + z1*z2', length=2)
        >>> named_target("product_and_He2sum", length=2, b=0.5)(np.ones(2)).tolist()
        [1.0]
    """
    row = NAMED_TARGETS[check.choice("name", name, NAMED_TARGETS)]
    length = check.integer("length", length, 1)
    return Target(row.expression(length), length, **{**row.parameters, **parameters})
