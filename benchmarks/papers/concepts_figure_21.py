"""Figure 21 of Learning When Concepts Abound: does a least weight of 0.01 estimate the highest proportion well?

    python benchmarks/papers/concepts_figure_21.py DATA [--measure] [--quick]

Generated streams of 1,000 classes, 200 trials (no data are read). The deviation is |estimate − p*| / p*. The paper has
a plot: its finding is that 0.01 is satisfactory for p* ≥ 0.05, and 0.1 on a much smaller range.
"""

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from beside import CONCEPTS, Recorder, Row, Verdict, figures, present
from streams import counted

HIGHEST = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
WEIGHTS = (0.0, 0.01, 0.1)
NEAR = 0.05
"""A deviation above that of unbounded space which is still satisfactory."""


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    table = recorder.table("Figure 21: deviation of the highest proportion", "Mean over trials, by least weight.")
    generator = np.random.default_rng(0)
    for regime in ("100 classes", "1/p* classes"):
        for highest in HIGHEST:
            n_classes = 100 if regime == "100 classes" else ceil(1 / highest)
            probabilities: Any = np.full(n_classes, (1 - highest) / (n_classes - 1))
            probabilities[0] = highest
            trials = [counted(probabilities, generator, WEIGHTS) for _ in range(5 if quick else 200)]
            deviations = np.abs(np.array(trials).max(axis=2) - highest).mean(axis=0) / highest
            shown = {str(weight): float(value) for weight, value in zip(WEIGHTS, deviations, strict=True)}
            table.row({"classes": regime, "p*": highest}, shown)


def judge(rows: list[Row]) -> Verdict:
    useful = [row for row in figures(rows) if row["p*"] >= 0.05]
    worst = {weight: max(row[weight] - row["0.0"] for row in useful) for weight in ("0.01", "0.1")}
    told = ", ".join(f"{weight}: {value:+.3f}" for weight, value in worst.items())
    holds = worst["0.01"] <= NEAR < worst["0.1"]
    return holds, f"for p* ≥ 0.05, 0.01 is within {NEAR} of unbounded space and 0.1 is not (worst {told})"


if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 21", "concepts_figure_21", ["Figure 21"], measure, judge)
