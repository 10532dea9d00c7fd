"""Slow, obvious twins of the measures, the paired tests and the word windows."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np


def places(rows, others):
    """For each id of each row, its place from 1 among the others; 0 if absent or negative."""
    return [
        [other.index(wanted) + 1 if wanted >= 0 and wanted in other else 0 for wanted in row]
        for row, other in zip(rows, others, strict=True)
    ]


def best_rank(true, ranked):
    for rank, label in enumerate(ranked, start=1):
        if label is not None and label in true:
            return rank
    return math.inf


def recall(true, ranked, k):
    return sum(best_rank(t, r) <= k for t, r in zip(true, ranked, strict=True)) / len(true)


def mean_reciprocal_rank(true, ranked):
    return sum(1 / best_rank(t, r) for t, r in zip(true, ranked, strict=True)) / len(true)


def precision(true, ranked, k):
    return sum(len(set(t) & set(r[:k])) / k for t, r in zip(true, ranked, strict=True)) / len(true)


def gain(true, ranked, k, weight=lambda label: 1.0):
    return sum(weight(label) / math.log2(i + 2) for i, label in enumerate(ranked[:k]) if label in true)


def ndcg(true, ranked, k):
    return sum(gain(t, r, k) / gain(t, list(t), k) if t else 0.0 for t, r in zip(true, ranked, strict=True)) / len(true)


def inverse_propensity(label, train_rows, a=0.55, b=1.5):
    count = sum(label in row for row in train_rows)
    c = max(0.0, (math.log(len(train_rows)) - 1)) * (b + 1) ** a
    return 1 + c * math.exp(-a * math.log(count + b))


def ps_precision(true, ranked, k, train_rows):
    got = best = 0.0
    for t, r in zip(true, ranked, strict=True):
        got += sum(inverse_propensity(label, train_rows) for label in r[:k] if label in t)
        best += sum(sorted((inverse_propensity(label, train_rows) for label in t), reverse=True)[:k])
    return got / best if best else 0.0


def ps_ndcg(true, ranked, k, train_rows):
    got = best = 0.0
    for t, r in zip(true, ranked, strict=True):
        if not t:
            continue
        ideal = gain(t, list(t), k)
        rarest_first = sorted(t, key=lambda label: -inverse_propensity(label, train_rows))
        got += gain(t, r, k, lambda label: inverse_propensity(label, train_rows)) / ideal
        best += gain(t, rarest_first, k, lambda label: inverse_propensity(label, train_rows)) / ideal
    return got / best if best else 0.0


def f1(label, true, predicted):
    right = sum(label in t and label in p for t, p in zip(true, predicted, strict=True))
    either = sum((label in t) + (label in p) for t, p in zip(true, predicted, strict=True))
    return 2 * right / either if either else 0.0


def macro_f1(true, predicted, also=()):
    labels = set(also).union(*true, *predicted)
    return sum(f1(label, true, predicted) for label in labels) / len(labels) if labels else 0.0


def micro_f1(true, predicted):
    right = sum(len(set(t) & set(p)) for t, p in zip(true, predicted, strict=True))
    either = sum(len(t) + len(p) for t, p in zip(true, predicted, strict=True))
    return 2 * right / either if either else 0.0


def sign_p(wins, losses):
    """Two-sided: the chance of a result at least as uneven."""
    n = wins + losses
    uneven = [i for i in range(n + 1) if abs(2 * i - n) >= abs(wins - losses)]
    return sum(math.comb(n, i) for i in uneven) / 2**n


def wilcoxon_p(gains):
    """Two-sided, over all ways to hang signs on the ranks; for differences without ties."""
    gains = [gain for gain in gains if gain]
    order = sorted(abs(gain) for gain in gains)
    ranks = [order.index(abs(gain)) + 1 for gain in gains]
    middle = sum(ranks) / 2
    seen = abs(sum(rank for rank, gain in zip(ranks, gains, strict=True) if gain > 0) - middle)
    totals = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product((0, 1), repeat=len(ranks))
    ]
    return sum(abs(total - middle) >= seen for total in totals) / len(totals)


WINDOW = ["-3", "-2", "-1", "1", "2", "3", "-2,-1", "1,2", "-1,1", "-3,-2", "2,3"]
WINDOW += ["-3,-2,-1", "1,2,3", "-2,-1,1", "-1,1,2"]


def word_rows(text):
    """One (word, features) for each word of a text."""
    rows = []
    for sentence in re.split(r"[.!?;]|\n\s*\n", text.lower().replace("’", "'")):
        words = re.findall(r"[a-z']+", sentence)
        for i, word in enumerate(words):
            features = []
            for positions in WINDOW:
                at = [i + int(position) for position in positions.split(",")]
                features.append(f"{positions}={'|'.join(words[j] if 0 <= j < len(words) else '<s>' for j in at)}")
            rows.append((word, features))
    return rows


class NaiveTree:
    """A tree given by the parent of each label (None at the root); nodes are numbered in the order given."""

    def __init__(self, parents):
        self.parents = parents
        self.names = list(parents)

    def node_ids(self, labels):
        return np.array([self.names.index(label) if label in self.parents else -1 for label in labels], dtype=np.int32)

    def path(self, label):
        path = [label]
        while self.parents[path[-1]] is not None:
            path.append(self.parents[path[-1]])
        return path

    def distance(self, a, b):
        up_a, up_b = self.path(a), self.path(b)
        return len(set(up_a) ^ set(up_b))

    def distances(self, a, b):
        assert np.all(np.asarray(a) >= 0)
        assert np.all(np.asarray(b) >= 0)
        return np.array(
            [self.distance(self.names[i], self.names[j]) for i, j in zip(a, b, strict=True)], dtype=np.int32
        )


def reliability(probabilities, right, n_bins):
    """Bins of equal mass, row by row; rows of which the same was said count with their mean."""
    rows = sorted(range(len(right)), key=lambda i: probabilities[i])
    share = {}
    for said in set(probabilities):
        of_it = [right[i] for i in rows if probabilities[i] == said]
        share[said] = sum(of_it) / len(of_it)
    n_bins, found = min(n_bins, len(rows)), []
    for b in range(n_bins):
        inside = rows[b * len(rows) // n_bins : (b + 1) * len(rows) // n_bins]
        said = sum(probabilities[i] for i in inside) / len(inside)
        found.append((said, sum(share[probabilities[i]] for i in inside) / len(inside), len(inside)))
    return found


def calibration_error(probabilities, right, n_bins):
    found = reliability(probabilities, right, n_bins)
    return sum(abs(said - share) * rows for said, share, rows in found) / len(right)
