"""Slow obvious twins of cuts, calibration and sure answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Row = list[tuple[int, float]]
"""Ranked classes of a row with their scores, best first."""


def rows_of(ids: Any, scores: Any) -> list[Row]:
    return [
        [(int(c), float(s)) for c, s in zip(row, levels, strict=True) if c >= 0]
        for row, levels in zip(ids, scores, strict=True)
    ]


def f1(taken: list[set[int]], truth: list[set[int]]) -> float:
    right = sum(len(a & b) for a, b in zip(taken, truth, strict=True))
    return 2 * right / max(1, sum(map(len, taken)) + sum(map(len, truth)))


def best_r(rows: list[Row], truth: list[set[int]], most: int) -> int:
    results = [f1([{c for c, _ in row[:r]} for row in rows], truth) for r in range(1, most + 1)]
    return 1 + results.index(max(results))


def best_threshold(row: Row, truth: set[int]) -> float:
    """The threshold with fewest false alarms and misses: each way to take the first m, at least one."""
    if not row:
        return 0.0
    tried = []
    for m in range(1, len(row) + 1):
        threshold = row[m - 1][1] if m == len(row) else (row[m - 1][1] + row[m][1]) / 2
        if m < len(row) and row[m][1] == row[m - 1][1]:
            continue
        taken = {c for c, _ in row[:m]}
        tried.append((len(taken ^ truth), threshold))
    fewest = min(mistakes for mistakes, _ in tried)
    equal = [threshold for mistakes, threshold in tried if mistakes == fewest]
    return sum(equal) / len(equal)


def class_threshold(rows: list[Row], truth: list[set[int]], c: int, fbr: bool, otherwise: float) -> float:
    levels = sorted((s for row in rows for label, s in row if label == c), reverse=True)
    if not levels:
        return otherwise
    n_true = sum(c in labels for labels in truth)
    best, chosen = -1.0, math.nan
    for m in range(1, len(levels) + 1):
        if m < len(levels) and levels[m] == levels[m - 1]:
            continue
        threshold = levels[m - 1] if m == len(levels) else (levels[m - 1] + levels[m]) / 2
        right = sum(
            label == c and s >= levels[m - 1] and c in labels
            for row, labels in zip(rows, truth, strict=True)
            for label, s in row
        )
        score = 2 * right / (m + n_true)
        if score > best:
            best, chosen = score, threshold
    if fbr and best < 0.1:
        return levels[0]
    return chosen if best > 0 else math.nextafter(levels[0], math.inf)


def share_taken(rows: list[Row], shares: list[float]) -> list[set[int]]:
    taken: list[set[int]] = [set() for _ in rows]
    for c, share in enumerate(shares):
        found = sorted((-s, i) for i, row in enumerate(rows) for label, s in row if label == c)
        for _, i in found[: math.ceil(share * len(rows))]:
            taken[i].add(c)
    return taken


def ridge_left_out(features: Any, targets: Any, penalty: float) -> float:
    """Squared error when each row is left out of a ridge regression with a free intercept."""
    total = 0.0
    for i in range(len(targets)):
        kept = np.arange(len(targets)) != i
        slopes, intercept = ridge(features[kept], targets[kept], penalty)
        total += float(targets[i] - features[i] @ slopes - intercept) ** 2
    return total


def ridge(features: Any, targets: Any, penalty: float) -> tuple[Any, float]:
    centred = features - features.mean(axis=0)
    slopes = np.linalg.solve(
        centred.T @ centred + penalty * np.eye(features.shape[1]), centred.T @ (targets - targets.mean())
    )
    return slopes, float(targets.mean() - features.mean(axis=0) @ slopes)


def platt_loss(A: float, B: float, scores: Any, positive: Any) -> float:
    n_right = sum(map(bool, positive))
    n_wrong = len(scores) - n_right
    total = 0.0
    for s, right in zip(scores, positive, strict=True):
        target = (n_right + 1) / (n_right + 2) if right else 1 / (n_wrong + 2)
        p = 1 / (1 + math.exp(A * s + B))
        total -= target * math.log(p) + (1 - target) * math.log(1 - p)
    return total


def probabilities(levels: list[float], by: str, first: Any, others: Any) -> list[float]:
    """Of ranked classes by their levels, the best first: by margin, the next has a share of what better ones leave."""
    found: list[float] = []
    left = 1.0
    for place, level in enumerate(levels):
        chance = float(first(level) if place == 0 else others(level))
        p = left * chance if by == "margin" else chance
        left *= 1 - chance
        found.append(min([p, *found]))
    return found


def isotonic(scores: list[float], positive: list[bool]) -> list[float]:
    """The largest mean that begins at or before a score's place of the smallest means that end at or behind it."""
    distinct = sorted(set(scores))

    def mean(first: int, last: int) -> float:
        within = [p for s, p in zip(scores, positive, strict=True) if distinct[first] <= s <= distinct[last]]
        return sum(within) / len(within)

    levels = {
        level: max(min(mean(a, b) for b in range(i, len(distinct))) for a in range(i + 1))
        for i, level in enumerate(distinct)
    }
    return [levels[s] for s in scores]


def sure_node(taxonomy: Any, row: list[tuple[Any, float]], least: float) -> Any:
    """The best class of a row or, if it is not sure enough, the deepest node that is, by name."""
    total = sum(p for _, p in row) or 1.0
    masses: dict[Any, float] = {}
    for label, p in row:
        nodes = [label, *taxonomy.ancestors(label)] if label in taxonomy else [label]
        for node in nodes:
            masses[node] = masses.get(node, 0.0) + p / total
    if row and row[0][1] / total >= least - 1e-9:
        return row[0][0]
    sure = [node for node, mass in masses.items() if mass >= least - 1e-9 and mass > 0]
    if not sure:
        return taxonomy.root if taxonomy.kind == "tree" else None

    def order(node: Any) -> tuple[int, float, int]:
        place = taxonomy.names.tolist().index(node) if node in taxonomy else 10**6
        return (int(taxonomy.depth[place]) if node in taxonomy else 0, masses[node], -place)

    return max(sure, key=order)
