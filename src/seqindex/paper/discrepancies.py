"""Where the paper, its released code and this package part, each with what follows from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Discrepancy:
    """One row.

    Attributes:
        where: place in the paper or the code.
        paper: what the paper says.
        code: what its released code does.
        here: what this package does.
        effect: what difference it makes, with a number where there is one; claims name those measured here.
    """

    where: str
    paper: str
    code: str
    here: str
    effect: str


DISCREPANCIES: tuple[Discrepancy, ...] = (
    Discrepancy(
        "loss of the phase-diagram runs",
        "||y - f||^2",
        "||y - f||, not squared",
        "both: loss='square' and 'norm'",
        "the switch at a = 1 moves from 0.6410 to 0.6278 (claims F5b)",
    ),
    Discrepancy(
        "untied network, appendix E",
        "largest rate like L^{-k/2} ||C_k||",
        "-",
        "L times that: a row's gradient carries L^{-1/2}",
        "gain at best rates L instead of L^2 for separable targets of SIE 2 (claim T2b)",
    ),
    Discrepancy(
        "figure 3",
        "gain L^2",
        "tied rate like sqrt(L), constant untied rate",
        "three schedules side by side",
        "exponents 1.5, 2 and 1 (claim T2b)",
    ),
    Discrepancy(
        "untied network, sphere",
        "each row on a sphere of its own",
        "all rows rescaled together",
        "sphere='rows' (default) and 'joint'",
        "overlap reaches sqrt(k/L) with rows, 1 jointly, where the target reads k of L tokens",
    ),
    Discrepancy(
        "trace reduction", "Tr S", "Tr S / sqrt(L)", "'plain_trace' and 'trace'", "decides whether SGD escapes (F2)"
    ),
    Discrepancy(
        "start of the phase-diagram runs",
        "uniform on the sphere",
        "exactly m = e = 0",
        "Start.random() and Start.orthogonal()",
        "the switch at d = 1000 moves by about 0.01 (claims F5b)",
    ),
    Discrepancy(
        "overlapped start",
        "-",
        "parameter o gives m = o / sqrt((1 - o)^2 + o^2); all rows with the same sign",
        "Start.released(o)",
        "0.1 becomes 0.110, 0.3 becomes 0.394",
    ),
    Discrepancy(
        "quadrature",
        "Gauss-Hermite with 17 or 19 nodes",
        "the same, with differences on an even grid that miss 0",
        "trapezoid and panel rules with errors",
        "the switch to the third digit, curvatures to 10 to 20 per cent (claim G)",
    ),
    Discrepancy(
        "flatness and escape", "the lowest derivative that does not vanish", "-", "escape_order beside flatness",
        "4/3 + He4 + 2 He4 with an encoding: flatness 2, no escape (claims F2, L1)",
    ),
    Discrepancy(
        "SIE 2, section 4 and theorem 4", "d log d in one place, d log^2 d in another", "constant rates",
        "a constant rate below 2 a / V", "d log d (claims T1)",
    ),
    Discrepancy(
        "time", "t = tau / gamma, with other units in appendix C", "-", "t = gamma step / d", "units only",
    ),
    Discrepancy(
        "order of (e, m)", "semantic called (1, 0) in section 4", "-", "m first, semantic (1, 0), positional (0, 1)",
        "names only",
    ),
    Discrepancy(
        "figure 5, caption", "the semantic minimum at omega = 0.67 is local", "-", "it is the global one",
        "risks at both minima in claim F5a",
    ),
    Discrepancy(
        "figure 1, caption", "He4 + He4 beside labels of SIE 2", "-", "He2 + He2 for SIE 2, He4 + He4 for SIE 4",
        "He4 + He4 has a minimum at the start (claim F1)",
    ),
    Discrepancy(
        "figure 10", "the tied square network", "trains the untied one under that name", "both",
        "attention overtakes only the untied network (claim F10)",
    ),
    Discrepancy(
        "population loss", "no factor", "a factor 1/2", "no factor", "risks twice those of the released code",
    ),
    Discrepancy(
        "metrics", "-", "options are written as metrics_kwargs and read as metric_kwargs", "signed overlaps",
        "stored overlaps lack their sign",
    ),
    Discrepancy(
        "crossing times", "-", "never crossed and crossed at the start are both infinite",
        "outcomes: recovered, already above, censored, diverged", "gains there divide such numbers",
    ),
    Discrepancy(
        "seeds", "-", "one start for all seeds in most files", "a start a replica", "error bars that are too small",
    ),
)  # fmt: skip
