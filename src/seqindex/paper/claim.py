"""Claims of the paper beside what is predicted and measured here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

CONFIRMED = "confirmed"
CONDITION = "confirmed with a condition"
REFUTED = "not confirmed"
UNDECIDED = "not decidable here"


def verdict_of(difference: float, error: float) -> str:
    """Verdict on "this difference is positive": three standard errors decide.

    Example:
        >>> verdict_of(0.5, 0.1), verdict_of(0.1, 0.1)
        ('confirmed', 'not decidable here: within 3 standard errors')
    """
    if abs(difference) < 3.0 * error:
        return f"{UNDECIDED}: within 3 standard errors"
    return CONFIRMED if difference > 0 else REFUTED


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims.

    Attributes:
        id: short name.
        where: place in the paper.
        statement: what the paper says, in our words.
        predicted: what the theory of this package says.
        measured: what was measured, with standard errors.
        verdict: one of ``CONFIRMED``, ``CONDITION``, ``REFUTED``, ``UNDECIDED``, possibly followed by why.
        seconds: processor time of the figure that it belongs to.
    """

    id: str
    where: str
    statement: str
    predicted: str
    measured: str
    verdict: str
    seconds: float = 0.0


_SYMBOLS = {CONDITION: "(✓)", CONFIRMED: "✓", REFUTED: "✗", UNDECIDED: "?"}


def symbol(verdict: str) -> str:
    """A verdict as a sign that is told apart without colour.

    Example:
        >>> symbol(CONFIRMED), symbol(f"{CONDITION}: only at night"), symbol(REFUTED)
        ('✓', '(✓)', '✗')
    """
    return next(sign for words, sign in _SYMBOLS.items() if verdict.startswith(words))


def markdown_table(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table.

    Example:
        >>> print(markdown_table([Claim("F1", "figure 1", "a", "b", "c | d", CONFIRMED)]).splitlines()[-1])
        | F1 | figure 1 | a | b | c / d | confirmed | 0 s |
    """
    names = [field.name for field in fields(Claim) if field.name != "seconds"]
    rows = [
        [*(getattr(claim, name).replace("|", "/").replace("\n", " ") for name in names), f"{claim.seconds:.0f} s"]
        for claim in claims
    ]
    header = [*names, "time"]
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
