"""Kernels of code matrices: drawing them, comparing their rows, the targets that they give, and decoding.

A ternary matrix of classes × classifiers is drawn as two planes of bits, 64 classifiers to a word: ``used`` where an
entry is not 0, ``signs`` where it is +1 if it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._lanes import LANES, dot_lanes
from abound.rank._topk_kernels import offer, sort_heap

WORD = 64
"""Classifiers in a word."""


@kernel
def random_word(seed: Any, number: Any, place: Any) -> Any:
    """Return 64 random bits that depend on the seed and two counters alone."""
    z = np.uint64(seed) + np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    for step in range(2):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        if step == 0:
            z += np.uint64(place) * np.uint64(0xD1B54A32D192ED03) + np.uint64(0x9E3779B97F4A7C15)
    return z


@kernel
def draw_planes(seed: Any, number: Any, n_bits: int, used: Any, signs: Any) -> None:
    """Draw a matrix: 0 with probability ½, +1 and -1 with ¼; no row is empty, and each column has both signs.

    A column that lacks a sign is drawn anew; a row that is empty gets one entry.
    """
    n_classes, n_words = used.shape
    place = 0
    for w in range(n_words):
        missing = ~np.uint64(0) >> np.uint64(WORD - min(WORD, n_bits - w * WORD))
        for c in range(n_classes):
            used[c, w] = 0
            signs[c, w] = 0
        while missing:
            positive, negative = np.uint64(0), np.uint64(0)
            for c in range(n_classes):
                use = random_word(seed, number, place) & missing
                sign = random_word(seed, number, place + 1) & missing
                place += 2
                used[c, w] = (used[c, w] & ~missing) | use
                signs[c, w] = (signs[c, w] & ~missing) | sign
                positive |= use & sign
                negative |= use & ~sign
            missing &= ~(positive & negative)
    for c in range(n_classes):
        empty = True
        for w in range(n_words):
            empty = empty and used[c, w] == 0
        if empty:
            bit = np.int64(random_word(seed, number, place) >> np.uint64(1)) % n_bits
            used[c, bit // WORD] = np.uint64(1) << np.uint64(bit % WORD)
            place += 1


@kernel
def count_ones(word: Any) -> Any:
    """Return the number of ones in a word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def nearest_rows(used: Any, signs: Any, largest: int) -> Any:
    """Return the largest ``u·v`` of two rows, or any that is above ``largest``: small is good.

    The distance ``Σ (1 − u v)/2`` of two rows is ``(n_bits − u·v)/2``.
    """
    n_classes, n_words = used.shape
    found = -(n_words * WORD)
    for c in range(n_classes):
        for d in range(c):
            agree = 0
            for w in range(n_words):
                both = used[c, w] & used[d, w]
                agree += count_ones(both) - 2 * count_ones(both & (signs[c, w] ^ signs[d, w]))
            if agree > found:
                found = agree
        if found > largest:
            break
    return found


@kernel
def best_planes(seed: Any, begin: int, end: int, n_bits: int, best: int, used: Any, signs: Any) -> Any:
    """Return the matrix of ``begin`` to ``end`` with the smallest largest ``u·v``, the first of equals, and that.

    Matrices that cannot be below ``best`` are left half compared; -1 if none is.
    """
    number = -1
    for candidate in range(begin, end):
        draw_planes(seed, candidate, n_bits, used, signs)
        agree = nearest_rows(used, signs, best - 1)
        if agree < best:
            best, number = agree, candidate
    return number, best


@kernel
def set_targets(indptr: Any, ids: Any, codes: Any, first: int, n_lanes: int, targets: Any) -> None:
    """Write each row's side in classifiers ``first`` to ``first + n_lanes``; 0 if its labels stand on none or both."""
    for i in range(len(indptr) - 1):
        for lane in range(LANES):
            side = 0
            if lane < n_lanes:
                for p in range(indptr[i], indptr[i + 1]):
                    code = codes[ids[p], first + lane]
                    if code != 0 and side == 0:
                        side = code
                    elif code == -side and code != 0:
                        side = 2
            targets[i, lane] = 0 if side == 2 else side


@kernel
def score_lanes(indptr: Any, indices: Any, data: Any, weights: Any, out: Any) -> None:
    """Write the outputs of sixteen classifiers for each row."""
    for i in range(len(indptr) - 1):
        dot_lanes(indices, data, indptr[i], indptr[i + 1], weights, out[i])


@kernel
def decode_rows(
    outputs: Any, codes: Any, loss: bool, class_of: Any, allowed: Any, best: Any, out_ids: Any, out_scores: Any
) -> None:
    """Write the best classes of each row of outputs, best first; places left over stay as they are.

    ``codes`` is classifiers × words. A word's score is minus its mean distance: the loss ``max(0, 1 − m f)²``, or the
    Hamming distance, where a 0 counts ½. A class has the score of its best word. ``best`` is room for the classes.
    """
    n_bits, n_words = codes.shape
    distance = np.empty(n_words, dtype=np.float32)
    for i in range(len(outputs)):
        distance[:] = 0
        for v in range(n_bits):
            f = outputs[i, v]
            if loss:
                positive, negative = max(np.float32(0), 1 - f) ** 2, max(np.float32(0), 1 + f) ** 2
                nothing = np.float32(1)
            else:
                positive = np.float32(0.5) if f == 0 else np.float32(f < 0)
                negative, nothing = 1 - positive, np.float32(0.5)
            tilt, lift = np.float32(0.5) * (positive - negative), np.float32(0.5) * (positive + negative) - nothing
            for c in range(n_words):
                m = np.float32(codes[v, c])
                distance[c] += nothing + tilt * m + lift * (m * m)
        best[:] = -np.inf
        for c in range(n_words):
            score = -distance[c] / max(1, n_bits)
            if score > best[class_of[c]]:
                best[class_of[c]] = score
        size = 0
        for c in range(len(best)):
            if len(allowed) == 0 or allowed[c]:
                size = offer(best[c], np.int32(c), size, out_ids[i], out_scores[i])
        sort_heap(size, out_ids[i], out_scores[i])
