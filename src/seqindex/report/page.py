"""A page that stands alone: text, tables and pictures in one HTML file, without network."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --text: #1a1a1a; --back: #ffffff; --mark: #b04a00; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #16181c; --mark: #ffab6b; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; color: var(--text); background: var(--back);
  max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0; }
.lead { color: color-mix(in srgb, var(--text) 70%, transparent); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
td:first-child { white-space: nowrap; }
figure { margin: 1rem 0; background: #fff; border: 1px solid var(--line); border-radius: 4px; padding: .5rem; }
figure img { display: block; width: 100%; height: auto; }
figcaption { color: #333; font-size: .88rem; padding: .3rem .2rem 0; }
code, pre { font: .9em/1.45 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--soft); border-radius: 3px; }
a { color: inherit; }
code { padding: .05em .3em; overflow-wrap: anywhere; }
pre { padding: .7rem; overflow-x: auto; }
"""


def page(title: str, lead: str, parts: Iterable[str]) -> str:
    """The whole page.

    Args:
        title: heading, plain text.
        lead: one sentence under it, plain text.
        parts: HTML of what ``section``, ``table``, ``picture`` and ``text`` return.

    Example:
        >>> page("He2 & relu", "A test.", []).count("He2 &amp; relu")
        2
    """
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    body = f"<h1>{html.escape(title)}</h1><p class=lead>{html.escape(lead)}</p>" + "\n".join(parts)
    title = html.escape(title)
    head += f"<title>{title}</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>\n"


def section(title: str, anchor: str = "") -> str:
    """A heading, which ``contents`` can lead to by its anchor."""
    place = f" id={html.escape(anchor)}" if anchor else ""
    return f"<h2{place}>{html.escape(title)}</h2>"


def contents(entries: Iterable[tuple[str, str]]) -> str:
    """Links to sections, from their anchors and titles."""
    items = "".join(f'<li><a href="#{html.escape(anchor)}">{html.escape(title)}</a></li>' for anchor, title in entries)
    return f"<ul>{items}</ul>"


def text(words: str) -> str:
    """A paragraph."""
    return f"<p>{html.escape(words)}</p>"


def code(words: str) -> str:
    """Lines of code."""
    return f"<pre>{html.escape(words)}</pre>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; it scrolls sideways on its own where it is too wide."""
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def picture(drawing: Figure, caption: str, dpi: int = 150) -> str:
    """A drawing inside the page, with its caption."""
    buffer = io.BytesIO()
    drawing.savefig(buffer, format="png", dpi=dpi)
    return _embedded(buffer.getvalue(), caption)


def image(path: Path, caption: str) -> str:
    """A PNG file inside the page, with its caption."""
    return _embedded(path.read_bytes(), caption)


def _embedded(png: bytes, caption: str) -> str:
    data = base64.b64encode(png).decode()
    words = html.escape(caption)
    return f'<figure><img alt="{words}" src="data:image/png;base64,{data}"><figcaption>{words}</figcaption></figure>'
