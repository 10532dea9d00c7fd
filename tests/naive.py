"""Slow and obvious twins of the kernels of index, rank and the index learners.

Scores are rounded to float32 after each vote, as in the kernels, so that learners can be compared bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

f32 = np.float32
EdgeList = list[list[Any]]


def rows_of(X: Any) -> list[list[tuple[int, Any]]]:
    """Active (feature, value) pairs of each row of a canonical CSR matrix."""
    pairs = zip(X.indices.tolist(), X.data.astype(np.float32), strict=True)
    flat = list(pairs)
    return [flat[a:b] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]


def rank(
    weights: Any, x: Any, k: int, every_class: bool = False, allowed: Any = None, offset: Any = None
) -> list[tuple[int, float]]:
    """Rank the classes of a dense row by a dense weight matrix."""
    scores = {}
    for c in range(weights.shape[1]):
        if allowed is not None and not allowed[c]:
            continue
        score, touched = f32(0), False
        for f in np.flatnonzero(x):
            if weights[f, c] != 0:
                score = f32(score + f32(x[f] * weights[f, c]))
                touched = True
        if every_class or (touched and score > 0):
            scores[c] = score
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
    common = f32(0)
    if offset is not None:
        for f in np.flatnonzero(x):
            common = f32(common + f32(x[f] * offset[f]))
    return [(c, float(f32(s + common))) for c, s in best]


class Learner:
    """Rows one by one: vote, margin, update; a subclass says how a feature votes and updates."""

    def __init__(self, margin: float, max_degree: int | None, vote_weight: float = 0.0) -> None:
        self.margin, self.max_degree, self.vote_weight = margin, max_degree, vote_weight
        self.lists: dict[int, EdgeList] = {}
        self.updates = self.hits = 0

    def factor(self, f: int, x: Any) -> float:
        return float(x)

    def lightest(self, f: int) -> float:
        return self.vote_weight

    def see(self, f: int) -> None:
        pass

    def update(self, row: list[tuple[int, Any]], y: int, sample_weight: Any, scores: dict[int, Any]) -> None:
        raise NotImplementedError

    def scores(self, row: list[tuple[int, Any]]) -> dict[int, Any]:
        scores: dict[int, Any] = {}
        for f, x in row:
            if x <= 0:
                continue
            for c, w in self.lists.get(f, [])[: self.max_degree]:
                if w < self.lightest(f):
                    break
                vote = self.factor(f, x) * w
                scores[c] = f32(float(scores[c]) + vote) if c in scores else f32(vote)
        return scores

    def learn(self, row: list[tuple[int, Any]], labels: list[int], sample_weight: float = 1.0) -> None:
        if not labels or sample_weight == 0:
            return
        for f, x in row:
            if x > 0:
                self.see(f)
        scores = self.scores(row)
        wrong = {c: s for c, s in scores.items() if c not in labels}
        rival = max([f32(0), *wrong.values()])
        self.hits += max([f32(0), *(scores.get(y, f32(0)) for y in labels)]) > rival
        for y in labels:
            if float(f32(max(scores.get(y, f32(0)), f32(0)) - rival)) <= self.margin:
                self.updates += 1
                self.update(row, y, f32(sample_weight), wrong)

    def edges(self) -> dict[tuple[int, int], float]:
        return {(f, c): w for f, edges in self.lists.items() for c, w in edges}


def strengthen(edges: EdgeList, c: int, amount: float) -> None:
    """Add to an edge, a new one if need be, and move it up past lighter ones."""
    place = next((i for i, edge in enumerate(edges) if edge[0] == c), len(edges))
    if place == len(edges):
        edges.append([c, 0.0])
    edges[place][1] += amount
    while place > 0 and edges[place - 1][1] < edges[place][1]:
        edges[place - 1], edges[place] = edges[place], edges[place - 1]
        place -= 1


class FeatureFocus(Learner):
    """FF with FSU; lists hold counts."""

    def __init__(
        self,
        margin: float = 0.0,
        min_weight: float = 0.01,
        max_degree: int | None = 25,
        vote_weight: float = 0.0,
        rate_features: int | None = 10,
        leak: bool = True,
    ) -> None:
        super().__init__(margin, max_degree, vote_weight)
        self.min_weight, self.rate_features, self.leak = min_weight, rate_features, leak
        self.totals: dict[int, float] = {}
        self.seen: dict[int, int] = {}

    def see(self, f: int) -> None:
        self.seen[f] = self.seen.get(f, 0) + 1

    def rating(self, f: int) -> float:
        return 1.0 if self.rate_features is None else min(1.0, self.seen[f] / self.rate_features)

    def factor(self, f: int, x: Any) -> float:
        return self.rating(f) * float(x) / self.totals[f]

    def lightest(self, f: int) -> float:
        return self.vote_weight * self.totals[f]

    def update(self, row: list[tuple[int, Any]], y: int, sample_weight: Any, scores: dict[int, Any]) -> None:
        for f, value in row:
            x = float(f32(value * sample_weight))
            if x <= 0:
                continue
            edges = self.lists.setdefault(f, [])
            strengthen(edges, y, x)
            self.totals[f] = self.totals.get(f, 0.0) + x
            while edges and edges[-1][1] < self.min_weight * self.totals[f]:
                dropped = edges.pop()[1]
                if not self.leak:
                    self.totals[f] -= dropped

    def weights(self) -> dict[tuple[int, int], float]:
        """The exported votes r_f · n[f, c] / n[f] of the edges that may vote."""
        votes = {}
        for f, edges in self.lists.items():
            for c, count in edges[: self.max_degree]:
                weight = count * (1 / self.totals[f]) if self.totals[f] > 0 else 0.0
                if weight >= self.vote_weight:
                    votes[f, c] = weight * self.rating(f)
        return votes


class EMA(Learner):
    """Exponential moving averages."""

    def __init__(
        self,
        rate: float = 0.1,
        margin: float = 0.0,
        min_weight: float = 0.002,
        max_degree: int | None = 25,
        vote_weight: float = 0.0,
    ) -> None:
        super().__init__(margin, max_degree, vote_weight)
        self.rate, self.min_weight = rate, min_weight

    def update(self, row: list[tuple[int, Any]], y: int, sample_weight: Any, scores: dict[int, Any]) -> None:
        for f, x in row:
            step = min(1.0, self.rate * float(x) * float(sample_weight))
            if step <= 0:
                continue
            edges = self.lists.setdefault(f, [])
            for edge in edges:
                edge[1] *= 1 - step
            strengthen(edges, y, step)
            while edges and edges[-1][1] < self.min_weight:
                edges.pop()


def deductions(scores: list[float], k: int, lowest: float, rate: float) -> list[float]:
    """Compute_Deductions with its slips repaired: scores of all offenders, best first."""
    size = min(k, len(scores))
    given = [0.0] * size
    taken = 0.0
    for i in range(size):
        step = rate - taken
        if i + 1 < size:
            step = min(step, scores[i] - scores[i + 1])
        elif len(scores) <= k:
            step = min(step, scores[i] - lowest)
        for j in range(i + 1):
            given[j] += step / (i + 1)
        taken += step
        if taken >= rate:
            break
    return given


class OOZ(Learner):
    """OOZ_Update, Shift_Connection_Weights; lists are in the order of arrival, gaps filled by the last."""

    def __init__(
        self,
        rate: float = 0.001,
        margin: float = 0.005,
        max_negatives: int = 15,
        max_degree: int | None = None,
        min_weight: float = 1e-6,
    ) -> None:
        super().__init__(margin, None)
        self.rate, self.max_negatives, self.min_weight = rate, max_negatives, min_weight
        self.limit = max_degree
        self.free: dict[int, float] = {}

    def learn(self, row: list[tuple[int, Any]], labels: list[int], sample_weight: float = 1.0) -> None:
        if not labels or sample_weight == 0:
            return
        scores = self.scores(row)
        wrong = {c: s for c, s in scores.items() if c not in labels}
        rival = max([0.0, *(float(s) for s in wrong.values())])
        self.hits += max([0.0, *(float(scores.get(y, 0)) for y in labels)]) > rival
        step = min(self.rate * float(f32(sample_weight)), self.margin / 2)
        for y in labels:
            lowest = float(max(scores.get(y, f32(0)), f32(0))) - self.margin
            if rival >= lowest:
                self.updates += 1
                self.shift(row, y, step, lowest, wrong)

    def shift(self, row: list[tuple[int, Any]], y: int, rate: float, lowest: float, wrong: dict[int, Any]) -> None:
        offenders = sorted(((c, float(s)) for c, s in wrong.items() if s >= lowest), key=lambda item: -item[1])
        given = deductions([s for _, s in offenders], self.max_negatives, lowest, rate)
        left = list(given)
        for f, value in row:
            x = float(value)
            if x <= 0:
                continue
            edges = self.lists.setdefault(f, [])
            free = self.free.setdefault(f, 1.0)
            by_class = {edge[0]: edge for edge in edges}
            allowance, boost = x * rate, 0.0
            for j, (c, _) in enumerate(offenders[: self.max_negatives]):
                if allowance <= 0:
                    break
                if c not in by_class or left[j] <= 0:
                    continue
                moved = min(left[j] / x, by_class[c][1], x * given[j], allowance)
                boost += moved
                by_class[c][1] -= moved
                left[j] -= moved * x
                allowance -= moved
            from_free = max(0.0, min(free, allowance))
            self.free[f] -= from_free
            boost += from_free
            if y in by_class:
                by_class[y][1] += boost
            elif boost > 0:
                edges.append([y, boost])
            self.tidy(f, edges)

    def tidy(self, f: int, edges: EdgeList) -> None:
        i = 0
        while i < len(edges):
            if edges[i][1] < self.min_weight:
                self.remove(f, edges, i)
            else:
                i += 1
        while self.limit is not None and len(edges) > self.limit:
            self.remove(f, edges, min(range(len(edges)), key=lambda j: edges[j][1]))

    def remove(self, f: int, edges: EdgeList, i: int) -> None:
        self.free[f] += edges[i][1]
        edges[i] = edges[-1]
        edges.pop()


class Unweighted:
    """The unweighted index: a dictionary of weights for each class."""

    def __init__(self, df: dict[int, int], tolerance: int = 5) -> None:
        self.df, self.tolerance = df, tolerance
        self.weights: dict[int, dict[int, float]] = {}

    def retrieved(self, row: list[tuple[int, Any]]) -> set[int]:
        active = {f for f, x in row if x > 0}
        return {c for c, v in self.weights.items() if any(w >= 0.1 for f, w in v.items() if f in active)}

    def learn(self, row: list[tuple[int, Any]], labels: list[int]) -> None:
        if not labels:
            return
        active = [f for f, x in row if x > 0]
        retrieved = self.retrieved(row)
        for y in labels:
            if y not in retrieved:
                v = self.weights.setdefault(y, {})
                for f in active:
                    v[f] = v[f] * 1.2 if f in v else 1.0 / self.df[f]
                self.normalise(y)
        wrong = retrieved - set(labels)
        if len(wrong) > self.tolerance:
            for c in wrong:
                for f in active:
                    if f in self.weights[c]:
                        self.weights[c][f] *= 0.8
                self.normalise(c)

    def normalise(self, c: int) -> None:
        v = self.weights[c]
        largest = max(v.values(), default=0.0)
        if largest > 0:
            for f in v:
                v[f] /= largest


def independent(X: Any, labels: list[list[int]], threshold: float) -> dict[tuple[int, int], float]:
    """P(c | f) on Boolean features, kept where it is at least the threshold."""
    pair: dict[tuple[int, int], float] = {}
    total: dict[int, float] = {}
    for row, classes in zip(rows_of(X), labels, strict=True):
        for f, x in row:
            if x > 0:
                total[f] = total.get(f, 0) + 1
                for c in classes:
                    pair[f, c] = pair.get((f, c), 0) + 1
    return {(f, c): n / total[f] for (f, c), n in pair.items() if n / total[f] >= threshold}
