"""Figure 22 of Learning When Concepts Abound: are proportions counted with a least weight of 0.01 near the true ones?

    python benchmarks/papers/concepts_figure_22.py DATA [--measure] [--quick]

Class probabilities drawn uniformly one by one until the mass is spent, streams of 1,000, 200 trials (no data are read).
The paper has a plot: its finding is that 0.01 is comparable to 0, and 0.1 significantly inferior.
"""

from pathlib import Path
from typing import Any

import numpy as np
from beside import CONCEPTS, Recorder, Row, Verdict, figures, present
from streams import counted

WEIGHTS = (0.0, 0.01, 0.05, 0.1, 0.2)


def drawn(generator: Any) -> Any:
    """Return class probabilities."""
    found, left = [], 1.0
    while left > 0:
        found.append(min(left, generator.random()))
        left -= found[-1]
    return np.array(found) / np.sum(found)


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    table = recorder.table("Figure 22: distance to the true proportions", "Mean over trials.")
    generator = np.random.default_rng(0)
    distances = []
    for _ in range(10 if quick else 200):
        probabilities = drawn(generator)
        apart = np.abs(np.array(counted(probabilities, generator, WEIGHTS)) - probabilities)
        distances.append((apart.sum(axis=1), apart.max(axis=1)))
    sums, largest = np.mean(distances, axis=0)
    for weight, one, most in zip(WEIGHTS, sums, largest, strict=True):
        table.row({"min_weight": weight}, {"l1": float(one), "l max": float(most)})


def judge(rows: list[Row]) -> Verdict:
    found = {row["min_weight"]: row["l1"] for row in figures(rows)}
    told = ", ".join(f"{weight:g}: {value:.4f}" for weight, value in found.items())
    holds = found[0.01] <= 1.1 * found[0.0] and found[0.1] > 1.25 * found[0.0]
    return holds, f"0.01 is comparable to 0 (within a tenth), 0.1 inferior (by a quarter or more); l1 {told}"


if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 22", "concepts_figure_22", ["Figure 22"], measure, judge)
