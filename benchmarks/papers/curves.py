"""SaDyC beside the methods that know no ontology, along the curves that ``budget.py`` measures."""

from __future__ import annotations

from collections.abc import Callable

from beside import Row, Verdict, figures

RIVALS = ("H-SC", "E-Hamming", "E-LossBased")


def at_least(low: float) -> Callable[[list[Row]], Verdict]:
    """Judge whether SaDyC has the best accuracy at ratios from ``low`` on; a rival is met at a ratio near its own."""

    def judge(rows: list[Row]) -> Verdict:
        found = figures(rows)
        ours = [(row["ratio"], row["accuracy"]) for row in found if row["method"] == "SaDyC"]
        if not ours:
            return False, "SaDyC is not measured"
        worse = []
        for row in found:
            if row["method"] in RIVALS and low <= row["ratio"] <= 0.25:
                # The curve at the rival's ratio, or the nearest that is recorded.
                accuracy = min(ours, key=lambda point: abs(point[0] - row["ratio"]))[1]
                worse += (
                    [f"{row['method']} {row['accuracy']:.3f} to {accuracy:.3f}"] if row["accuracy"] > accuracy else []
                )
        told = f"above it at a like ratio: {', '.join(worse)}" if worse else "none is above it at a like ratio"
        return not worse, f"SaDyC leads among methods without an ontology at ratios from {low:g} on; {told}"

    return judge
