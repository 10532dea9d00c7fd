"""The parts of a report that are drawings."""

from __future__ import annotations

from html import escape

from abound.compare import svg
from abound.compare.elements import paragraph, section, table
from abound.compare.findings import Findings
from abound.compare.results import Standing, pareto

INSTANT = 1e-3
"""Seconds and milliseconds below this are all the same to a reader."""


def train_time(found: Findings) -> str:
    """Draw accuracy against training time.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    values = [line.train_seconds for line in found.lines]
    return _cost_section(found.lines, values, "train-time", "Accuracy against training time", "training, seconds")


def rank_time(found: Findings) -> str:
    """Draw accuracy against ranking time.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    values = [line.rank_ms for line in found.lines]
    return _cost_section(found.lines, values, "rank-time", "Accuracy against ranking time", "ranking, ms a row")


def tail(found: Findings) -> str:
    """Draw accuracy by the number of training rows of a class.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    title = "Accuracy by class frequency"
    if not found.lines:
        return section("tail", title, paragraph("No learner has a result."))
    bins = found.lines[0].rows[0]["tail"]
    shown = [i for i, entry in enumerate(bins) if entry["labels"]]
    groups = [bins[i]["training_rows"] for i in shown]
    values = {line.learner: [line.rows[0]["tail"][i]["recall"] for i in shown] for line in found.lines}
    chart = svg.bars(
        "tail-chart",
        title,
        "Share of true labels found first, by the number of training rows of their class. The table has the figures.",
        groups,
        [(i, values[line.learner]) for i, line in enumerate(found.lines)],
        ("training rows of the class", "found first"),
    )
    rows = [
        ["labels in the test", *(f"{bins[i]['labels']:,}" for i in shown)],
        *([name, *("" if v is None else f"{v:.3f}" for v in row)] for name, row in values.items()),
    ]
    drawn = f'<div class="pair"><div>{chart}{_legend(found.lines)}</div>{table(["", *groups], rows)}</div>'
    return section("tail", title, drawn)


def passes(found: Findings) -> str:
    """Draw accuracy by passes over the training rows.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    title = "Accuracy after each pass"
    series = []
    for i, line in enumerate(found.lines):
        fixed = {name: value for name, value in line.setting.items() if name != "passes"}
        for row in line.tried:
            parameters = {name: v for name, v in row["experiment"]["parameters"].items() if name != "passes"}
            points = [(float(e["pass"]), float(e["R1"])) for e in row["history"] or () if "pass" in e and "R1" in e]
            if points and parameters == fixed and not row["error"]:
                series.append((i, points))
                break
    if not series:
        return section("passes", title, paragraph("No learner that takes passes took part."))
    drawn = [found.lines[i] for i, _ in series]
    chart = svg.curves(
        "passes-chart",
        title,
        "R1 on held-out training rows after each pass, for " + ", ".join(line.learner for line in drawn) + ".",
        series,
        ("pass", "R1 on held-out rows"),
    )
    legend = _legend(found.lines, {i for i, _ in series})
    note = paragraph("On the rows that settings were chosen by, at the setting that was chosen.", "quiet")
    return section("passes", title, chart, legend, note)


def anytime(found: Findings) -> str:
    """Draw accuracy against complexity ratio.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    title = "Accuracy against complexity ratio"
    measured = [(i, line.rows[0].get("anytime") or []) for i, line in enumerate(found.lines)]
    series = [(i, [(point["ratio"], point["R1"]) for point in points]) for i, points in measured if points]
    if not series:
        return section("anytime", title, paragraph("No learner that answers within a budget took part."))
    chart = svg.curves(
        "anytime-chart",
        title,
        "R1 by the number of classifiers that a row may ask, as a part of the number of classes.",
        series,
        ("classifiers asked / classes", "R1"),
        log=True,
    )
    return section("anytime", title, chart, _legend(found.lines, {i for i, _ in series}))


def _cost_section(lines: list[Standing], costs: list[float], ident: str, title: str, label: str) -> str:
    if not lines:
        return section(ident, title, paragraph("No learner has a result."))
    costs = [max(cost, INSTANT) for cost in costs]
    gains = [line.recall for line in lines]
    front = pareto(costs, gains)
    names = ", ".join(lines[i].learner for i in front)
    points = [(line.learner, cost, gain) for line, cost, gain in zip(lines, costs, gains, strict=True)]
    chart = svg.scatter(
        f"{ident}-chart", title, f"R1 of each learner. On the Pareto front are {names}.", points, front, (label, "R1")
    )
    return section(ident, title, chart, paragraph(f"Pareto front, beaten by none in both: {names}.", "quiet"))


def _legend(lines: list[Standing], shown: set[int] | None = None) -> str:
    items = [
        f"<li>{svg.key(i)}{escape(line.learner)}</li>" for i, line in enumerate(lines) if shown is None or i in shown
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'
