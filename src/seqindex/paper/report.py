"""One report on the paper: every figure with its claims, what was found to differ, and how it was made."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import seqindex
from seqindex.paper.claim import Claim, markdown_table, symbol
from seqindex.paper.discrepancies import DISCREPANCIES
from seqindex.report import page
from seqindex.storage import write_whole

_TITLE = "Asymptotics of SGD in sequence single-index models, reproduced"
_LEAD = (
    "Every figure and claim of arXiv:2506.02651 with what is predicted and measured here. Times are processor seconds "
    "of the figure that a claim belongs to."
)
_HEADER = ("where", "the paper", "its released code", "here", "effect")


def write_report(folder: Path, found: Mapping[str, Sequence[Claim]], titles: Mapping[str, str], quick: bool) -> None:
    """Write report.html, which stands alone, and report.md beside the pictures.

    Args:
        folder: where the figures NAME.png lie.
        found: claims by figure.
        titles: of the figures.
        quick: whether the numbers are of the small scale.
    """
    write_whole(folder / "report.html", lambda path: path.write_text(_html(folder, found, titles, quick), "utf-8"))
    write_whole(folder / "report.md", lambda path: path.write_text(_markdown(found, titles, quick), "utf-8"))


def _made(quick: bool) -> str:
    scale = "small scale (--quick), for a first look" if quick else "full scale"
    return f"seqindex {seqindex.__version__}, Python {platform.python_version()}, {platform.machine()}; {scale}."


def _html(folder: Path, found: Mapping[str, Sequence[Claim]], titles: Mapping[str, str], quick: bool) -> str:
    every = [claim for claims in found.values() for claim in claims]
    parts = [page.text(_made(quick)), page.section("Contents")]
    links = [(name, f"{name}: {titles[name]}") for name in found]
    parts.append(page.contents([("claims", "All claims"), *links, ("differences", "Paper, released code, and here")]))
    parts += [page.section("All claims", "claims"), page.table(("", "id", "claim", "verdict"), _rows(every))]
    for name, claims in found.items():
        parts.append(page.section(f"{name}: {titles[name]}", name))
        parts.append(page.image(folder / f"{name}.png", titles[name]))
        parts += [_card(claim) for claim in claims]
    parts.append(page.section("Paper, released code, and here", "differences"))
    parts.append(page.table(_HEADER, [(d.where, d.paper, d.code, d.here, d.effect) for d in DISCREPANCIES]))
    return page.page(_TITLE, _LEAD, parts)


def _rows(claims: Sequence[Claim]) -> list[tuple[str, str, str, str]]:
    return [(symbol(claim.verdict), claim.id, claim.statement, claim.verdict) for claim in claims]


def _card(claim: Claim) -> str:
    rows = [
        ("claim", f"{claim.statement} ({claim.where})"),
        ("predicted", claim.predicted),
        ("measured", claim.measured),
        ("verdict", f"{symbol(claim.verdict)} {claim.verdict}"),
        ("time", f"{claim.seconds:.0f} s"),
    ]
    return page.table((claim.id, ""), rows)


def _markdown(found: Mapping[str, Sequence[Claim]], titles: Mapping[str, str], quick: bool) -> str:
    lines = [f"# {_TITLE}", "", _LEAD, "", _made(quick), ""]
    for name, claims in found.items():
        lines += [f"## {name}: {titles[name]}", "", f"![{titles[name]}]({name}.png)", "", markdown_table(claims)]
    lines += ["## Paper, released code, and here", "", "| " + " | ".join(_HEADER) + " |", "| --- " * 5 + "|"]
    for d in DISCREPANCIES:
        cells = (cell.replace("|", "\\|") for cell in (d.where, d.paper, d.code, d.here, d.effect))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
