"""The report: one HTML file with its style and its drawings inside, which asks nothing of the network."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from abound.compare import charts, sections
from abound.compare.findings import Findings

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may do with the page: show it."""


def make_page(found: Findings, command: str | None = None) -> str:
    """Write the report.

    Parameters
    ----------
    found : Findings
        What a comparison has found.
    command : str, optional
        What to type to train the learner that is recommended.

    Returns
    -------
    str
        HTML.
    """
    name = escape(found.comparison.dataset.name)
    style = files("abound.compare").joinpath("report.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Learners on {name}</title>",
            f"<style>\n{style}</style></head>",
            "<body><main>",
            f"<h1>Learners on {name}</h1>",
            f'<p class="quiet">{escape(sections.facts_of(found))}</p>',
            sections.recommendation(found, command),
            sections.measures(found),
            f'<div class="pair">{charts.train_time(found)}{charts.rank_time(found)}</div>',
            charts.tail(found),
            f'<div class="pair">{charts.passes(found)}{charts.anytime(found)}</div>',
            sections.confusions(found),
            sections.significance(found),
            *sections.reliability(found),
            sections.doubts(found),
            sections.method(found),
            "</main>",
            f"<footer>{escape(sections.made_by(found))}</footer>",
            "</body></html>",
            "",
        ]
    )
