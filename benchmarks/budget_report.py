"""The tables and plots of `budget.py`, from the answers and times that it kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from abound.measure.significance import decision_sign_test
from record import RESULTS, Recorder

AT_RATIO = ("OAA", "ontology tree", "H-SC", "E-Hamming", "E-LossBased")
SEQUENTIAL = ("SaDyC", "SaDyC, sampled", "SaDyC (print)", "SaDyC (print), sampled")
PAPER = {
    "OAA": (45.50, 55.36, 60.83, 54.86, 52.16),
    "ontology tree": (46.73, 57.15, 63.16, 57.08, 54.84),
    "SaDyC": (49.78, 57.43, 62.36, 57.05, 55.29),
    "H-SC": (44.77, 53.72, 58.29, 52.63, 51.97),
    "E-Hamming": (45.03, 51.99, 56.98, 52.38, 50.89),
    "E-LossBased": (46.72, 54.42, 59.15, 54.20, 52.19),
}
"""Accuracy on five subsets of DMOZ, in percent."""
EXACT_MS, SAMPLED_MS, OVER = 300, 50, 1.2
ALL = 5
"""Subsets; of fewer there are tables of their own."""
PLOT, DENSITY_PLOT = "budget.svg", "budget_density.svg"


def report(recorder: Recorder, folder: Path, names: Sequence[str], n_subsets: int) -> None:
    """Write what is in the folder."""
    kept = {name: read_answers(folder, name, n_subsets) for name in names}
    # A method that has not answered all subsets yet would be compared on other rows.
    kept = {name: found for name, found in kept.items() if len(found) == n_subsets}
    path = folder / "seconds.json"
    seconds = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": {}, "limits": {}}
    some = "" if n_subsets == ALL else f"First {n_subsets} of the subsets: "
    accuracy_table(recorder, kept, seconds["rows"], some)
    curve_table(recorder, kept, some)
    if seconds["rows"]:
        seconds_table(recorder, seconds)
    if recorder.keep:
        draw(kept)


def read_answers(folder: Path, name: str, n_subsets: int) -> list[dict[str, Any]]:
    """Return a method's answers, subset by subset, as far as there are any."""
    paths = [folder / f"{number}-{name.replace(' ', '_')}.npz" for number in range(n_subsets)]
    found = []
    for path in paths:
        if not path.exists():
            break
        with np.load(path) as arrays:
            found.append({key: arrays[key] for key in arrays.files})
    return found


def accuracy_table(
    recorder: Recorder, kept: dict[str, list[dict[str, Any]]], milliseconds: dict[str, float], some: str
) -> None:
    """Accuracy at the ratio of the table, with wall times; and the paired tests."""
    n_rows = [len(each["right"]) for each in next(iter(kept.values()))]
    note = f"Accuracy on {', '.join(f'{n:,}' for n in n_rows)} test rows of each subset; ms a row on one core."
    table = recorder.table(f"{some}Accuracy at a complexity ratio of 0.2", note)
    means = {}
    for name in (*AT_RATIO, *SEQUENTIAL):
        if name not in kept:
            continue
        rights = [float(each["right"].mean()) for each in kept[name]]
        means[name] = float(np.mean(rights))
        figures: dict[str, Any] = {"ratio": float(np.mean([each["ratio"] for each in kept[name]]))}
        figures["ms a row"] = milliseconds.get(name)
        figures |= {f"set {i + 1}": value for i, value in enumerate(rights)} | {"mean": means[name]}
        paper = {"mean": float(np.mean(PAPER[name])) / 100} if name in PAPER else {}
        table.row({"method": name}, figures, paper)
    for name in [name for name in SEQUENTIAL[:2] if name in kept]:
        for other in [other for other in AT_RATIO if other in kept]:
            compare(table, kept, means, name, other)


def compare(table: Any, kept: dict[str, list[dict[str, Any]]], means: dict[str, float], name: str, other: str) -> None:
    """End the table with a paired test over the rows of all subsets."""
    one, two = (np.concatenate([each["right"] for each in kept[key]]).astype(int) for key in (name, other))
    test = decision_sign_test(np.ones(len(one), dtype=int), one, two)
    told = f"{means[name]:.4f} against {means[other]:.4f}, {test.wins}:{test.losses}, p = {test.p_value:.2g}"
    if other in ("H-SC", "E-Hamming"):
        table.finding(means[name] > means[other], f"{name} is above {other} ({told})")
    elif other == "E-LossBased":
        below = test.better == "second" and test.significant()
        table.finding(not below, f"{name} is not significantly below {other} ({told})")
    else:
        table.finding(means[name] > means[other], f"{name} is above {other} ({told}); not asked for")


def curve_table(recorder: Recorder, kept: dict[str, list[dict[str, Any]]], some: str) -> None:
    """Accuracy at other ratios."""
    table = recorder.table(f"{some}Accuracy against complexity ratio", "Means over the subsets.")
    last = list(kept)[-1]
    for name, found in kept.items():
        curve = np.mean([each["curve"] for each in found], axis=0).tolist()
        method = name.split(", ")[0] if "bits" in name else name
        for ratio, accuracy in curve:
            plot = f"results/{PLOT}" if (name, ratio) == (last, curve[-1][0]) else None
            table.row({"method": method, "ratio": ratio}, {"accuracy": accuracy}, plot=plot)
    for name in SEQUENTIAL:
        if name in kept:
            curve = np.mean([each["curve"] for each in kept[name]], axis=0)[:, 1]
            fall = float(np.max(np.maximum.accumulate(curve) - curve))
            table.target(fall < 0.005, f"{name}: more budget never lowers accuracy by more than noise ({fall:.4f})")


def seconds_table(recorder: Recorder, seconds: dict[str, Any]) -> None:
    """How long the oracles take, and how well limits are kept."""
    note = "1,000 classes, a pool of 3,000, 200 steps, one core; the sampled oracle looks at 100 candidates a step."
    table = recorder.table("SaDyC's oracles", note)
    rows, oracle = seconds["rows"], seconds.get("oracle") or {}
    for name in SEQUENTIAL:
        if name in rows:
            plot = f"results/{DENSITY_PLOT}" if name == "SaDyC" else None
            table.row({"oracle": name}, {"ms a row": rows[name]}, plot=plot)
    if oracle:
        table.row({"oracle": "every sum anew"}, {"ms a row": oracle["plain oracle ms"]})
        same = oracle["same choices"]
        table.target(
            same == 1, f"the exact oracle makes the same choices as one that computes every sum anew ({same:.3f})"
        )
    if "SaDyC" in rows:
        table.target(rows["SaDyC"] <= EXACT_MS, f"at most {EXACT_MS} ms a row with the exact oracle")
        table.target(rows["SaDyC, sampled"] <= SAMPLED_MS, f"at most {SAMPLED_MS} ms a row with the sampled oracle")
    limits = recorder.table("Limits in milliseconds", "Rows asked for one by one with max_ms; the whole call counts.")
    kept = True
    for name, found in seconds["limits"].items():
        for limit, figures in found.items():
            limits.row({"oracle": name, "max_ms": int(limit)}, figures)
            kept = kept and figures["99th percentile"] <= OVER * float(limit)
    limits.target(kept, "the 99th percentile is within 20% of the limit")


def draw(kept: dict[str, list[dict[str, Any]]]) -> None:
    """Plot accuracy against the ratio, and the density along the way."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "abound"
    import matplotlib.pyplot as plt

    curves: dict[str, list[list[float]]] = {}
    for name, found in kept.items():
        mean = np.mean([each["curve"] for each in found], axis=0).tolist()
        curves.setdefault(name.split(", ")[0] if "bits" in name else name, []).extend(mean)
    figure, axis = plt.subplots(figsize=(7, 4), constrained_layout=True)
    for name, points in curves.items():
        axis.plot(*zip(*sorted(points), strict=True), marker="o", markersize=3, label=name)
    axis.set(xscale="log", xlabel="classifiers asked / classes", ylabel="accuracy", ylim=(0, None))
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)
    figure.savefig(RESULTS / PLOT, metadata={"Date": None})
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), constrained_layout=True)
    for name in SEQUENTIAL:
        for axis, key in zip(axes, ("density", "left"), strict=True):
            if name in kept:
                axis.plot(np.mean([each[key] for each in kept[name]], axis=0), label=name)
    for axis, title in zip(axes, ("density of the classifier asked", "classes left"), strict=True):
        axis.set(xlabel="step", title=title, ylim=(0, None))
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.savefig(RESULTS / DENSITY_PLOT, metadata={"Date": None})
