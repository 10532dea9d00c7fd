"""Kernels of SaDyC: the order of the classes once the budget is spent."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel


@kernel
def mean_vote(word: Any, state: Any) -> Any:
    """μ of a word; 0 without votes."""
    return state.gained[word] / max(1, state.votes[word])


@kernel
def fits_better(word: Any, other: Any, counts: Any, state: Any) -> Any:
    """Whether a word ranks above another: those left first, then by μ, b, rows of the class, lower number."""
    if (state.belief[word] > 0) != (state.belief[other] > 0):
        return state.belief[word] > 0
    mean, other_mean = mean_vote(word, state), mean_vote(other, state)
    if mean != other_mean:
        return mean > other_mean
    if state.belief[word] != state.belief[other]:
        return state.belief[word] > state.belief[other]
    if counts[word] != counts[other]:
        return counts[word] > counts[other]
    return word < other


@kernel
def sink(word: Any, size: int, counts: Any, state: Any, heap: Any) -> None:
    """Replace the top of a heap of words, its worst, by another word."""
    i = 0
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        if down + 1 < size and fits_better(heap[down], heap[down + 1], counts, state):
            down += 1
        if not fits_better(word, heap[down], counts, state):
            break
        heap[i] = heap[down]
        i = down
    heap[i] = word


@kernel
def rank_words(words: Any, class_of: Any, counts: Any, state: Any, best: Any, ids: Any, scores: Any) -> None:
    """Write the best classes of a row, best first; places left over stay as they are.

    A class stands where its best word stands. Its score is μ − 1, less 1 more if it was discarded, and lower than the
    one before: of equals the one that ranks first has the larger number. ``best`` is room for the classes.
    """
    best[:] = -1
    for t in range(len(words)):
        word = words[t]
        c = class_of[word]
        if best[c] < 0 or fits_better(word, best[c], counts, state):
            best[c] = word
    size, heap = 0, ids
    for c in range(len(best)):
        if best[c] < 0:
            continue
        if size < len(heap):
            i = size
            size += 1
            while i > 0 and fits_better(heap[(i - 1) >> 1], best[c], counts, state):
                heap[i] = heap[(i - 1) >> 1]
                i = (i - 1) >> 1
            heap[i] = best[c]
        elif fits_better(best[c], heap[0], counts, state):
            sink(best[c], size, counts, state, heap)
    for end in range(size - 1, 0, -1):
        last = heap[end]
        heap[end] = heap[0]
        sink(last, end, counts, state, heap)
    above = np.float32(np.inf)
    for place in range(size):
        word = heap[place]
        score = np.float32(mean_vote(word, state) - (1 if state.belief[word] > 0 else 2))
        above = min(score, np.nextafter(above, np.float32(-np.inf)))
        ids[place] = class_of[word]
        scores[place] = above
