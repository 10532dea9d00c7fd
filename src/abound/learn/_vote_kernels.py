"""Kernels of the committee: the votes of several rankings of a row make one, and so do the scores of a dense block."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.rank._topk_kernels import add_vote, forget_votes, offer, sort_heap

BEYOND = 1e-9
"""Worth of a reciprocal rank beyond the depth that counts: it only orders classes that stand nowhere above it."""


@kernel
def count_votes(
    ranked: Any,
    class_counts: Any,
    depth: int,
    rare: bool,
    votes: Any,
    out_ids: Any,
    out_scores: Any,
) -> None:
    """Write the classes of each row with most votes, best first; places left over stay as they are.

    ``ranked`` is members × rows × places, best first, -1 where a ranking ends. A class scores its first places, and
    below the point the sum of its reciprocal ranks. ``rare`` puts the least frequent class with a first place on top.
    """
    score = votes.score
    n_members, n_rows, length = ranked.shape
    for i in range(n_rows):
        n = 0
        for j in range(n_members):
            for p in range(length):
                c = ranked[j, i, p]
                if c < 0:
                    break
                factor = 1 / (n_members + 1) if p < depth else BEYOND
                n = add_vote(votes, c, (p == 0) + factor / (p + 1), n)
        if rare:
            rarest = -1
            for j in range(n_members):
                c = ranked[j, i, 0]
                if c < 0:
                    continue
                rarer = rarest < 0 or class_counts[c] < class_counts[rarest]
                if not rarer and class_counts[c] == class_counts[rarest]:
                    rarer = score[c] > score[rarest] or (score[c] == score[rarest] and c < rarest)
                if rarer:
                    rarest = c
            if rarest >= 0:
                score[rarest] = n_members + 1
        size = 0
        for t in range(n):
            c = votes.touched[t]
            size = offer(np.float32(score[c]), c, size, out_ids[i], out_scores[i])
        forget_votes(votes, n)
        sort_heap(size, out_ids[i], out_scores[i])


@kernel
def take_best(scores: Any, allowed: Any, every_class: bool, out_ids: Any, out_scores: Any) -> None:
    """Write the best classes of each row of dense scores; all of them, or only those with a positive score."""
    for i in range(scores.shape[0]):
        size = 0
        for c in range(scores.shape[1]):
            if (every_class or scores[i, c] > 0) and (len(allowed) == 0 or allowed[c]):
                size = offer(scores[i, c], np.int32(c), size, out_ids[i], out_scores[i])
        sort_heap(size, out_ids[i], out_scores[i])
