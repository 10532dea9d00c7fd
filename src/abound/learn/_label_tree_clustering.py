"""Kernels that make trees of classes: centroids, and balanced halves of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.rank._lane_sums import ask_for

GAIN = 1e-4
"""2-means stops when the mean score, those of the first side with the other sign, gains less."""

AHEAD = 8
"""Members whose vectors are asked for before they are read: they are all over memory."""

LARGEST_SCALE = 3e38
"""A float32, and so is what it multiplies, as that is small."""

LOW_HALF, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@kernel
def count_centroids(
    indptr: Any,
    indices: Any,
    n_constant: int,
    class_indptr: Any,
    class_rows: Any,
    begin: int,
    end: int,
    seen: Any,
    counts: Any,
) -> None:
    """Count the features of classes ``begin`` to ``end``; ``seen``, one number a feature, begins at -1.

    The first ``n_constant`` entries of each row are left out: all classes have them.
    """
    for c in range(begin, end):
        n = 0
        for q in range(class_indptr[c], class_indptr[c + 1]):
            row = class_rows[q]
            for p in range(indptr[row] + n_constant, indptr[row + 1]):
                f = indices[p] - n_constant
                if seen[f] != c:
                    seen[f] = c
                    n += 1
        counts[c] = n


@kernel
def sum_centroids(
    indptr: Any,
    indices: Any,
    n_constant: int,
    data: Any,
    row_weights: Any,
    class_indptr: Any,
    class_rows: Any,
    begin: int,
    end: int,
    out_indptr: Any,
    place: Any,
    own_indices: Any,
    own_data: Any,
    out_indices: Any,
    out_data: Any,
) -> None:
    """Write the mean direction of classes ``begin`` to ``end``: the sum of their rows, of length 1.

    Where there is less room than a class has features, its heaviest ones are written, numbered without the constant
    one. ``place`` is -1 and stays so; ``own_indices`` and ``own_data`` have room for the features of any class.
    """
    for c in range(begin, end):
        n = 0
        for q in range(class_indptr[c], class_indptr[c + 1]):
            row = class_rows[q]
            weight = row_weights[row]
            for p in range(indptr[row] + n_constant, indptr[row + 1]):
                f = indices[p] - n_constant
                if place[f] < 0:
                    place[f] = n
                    own_indices[n] = f
                    own_data[n] = 0
                    n += 1
                own_data[place[f]] += weight * data[p]
        for t in range(n):
            place[own_indices[t]] = -1
        low, high = out_indptr[c], out_indptr[c + 1]
        write_heaviest(own_indices[:n], own_data[:n], out_indices[low:high], out_data[low:high])


@kernel
def write_heaviest(indices: Any, data: Any, out_indices: Any, out_data: Any) -> None:
    """Write a vector of length 1 with the heaviest numbers of another that there is room for, the first of ties."""
    n, room = len(data), len(out_data)
    bound, ties = np.float32(-1), 0
    if room < n:
        sizes = np.abs(data)
        bound = np.partition(sizes, n - room)[n - room]
        ties = room
        for t in range(n):
            ties -= sizes[t] > bound
    k, square = 0, 0.0
    for t in range(n):
        size = abs(data[t])
        if size > bound or (size == bound and ties > 0):
            ties -= size == bound
            out_indices[k], out_data[k] = indices[t], data[t]
            square += np.float64(data[t]) ** 2
            k += 1
    if square > 0:
        length = np.sqrt(square)
        scale = np.float32(1 / length)
        for t in range(k):
            # One over the length of denormal numbers is beyond a float32.
            out_data[t] = out_data[t] * scale if scale <= LARGEST_SCALE else np.float32(out_data[t] / length)


@kernel
def add_sides(
    indptr: Any, indices: Any, data: Any, members: Any, begin: int, cut: int, end: int, n: int, sides: Any, seen: Any,
    features: Any,
) -> Any:  # fmt: skip
    """Add up the members before and after the cut, in the two columns of ``sides``.

    Returns how many features occur, n of which had occurred before.
    """
    for t in range(begin, end):
        ask_for(indices, indptr[members[min(t + AHEAD, end - 1)]])
        ask_for(data, indptr[members[min(t + AHEAD, end - 1)]])
        side = 0 if t < cut else 1
        for p in range(indptr[members[t]], indptr[members[t] + 1]):
            f = indices[p]
            if not seen[f]:
                seen[f] = True
                features[n] = f
                n += 1
            sides[f, side] += data[p]
    return n


@kernel
def weigh_sides(n: int, enough: float, sides: Any, features: Any) -> None:
    """Write what each feature says about the sides over the sums of the first: above 0 speaks for the second.

    That is the difference of the two vectors of length 1, as in spherical 2-means, divided by ``1 + sum / enough``, the
    sum over both sides: else features that most members have would decide where these go, and what a few have in common
    would not count beside them. Weights are shares then, between about -1 and 1. With an infinite ``enough`` all count.
    """
    first = second = 0.0
    for t in range(n):
        f = features[t]
        first += np.float64(sides[f, 0]) ** 2
        second += np.float64(sides[f, 1]) ** 2
    first, second = np.sqrt(first), np.sqrt(second)
    unit = 1.0 if np.isinf(enough) else (first + second) / (2 * enough)
    scale = np.float32(min(unit / first, LARGEST_SCALE) if first > 0 else 0.0)
    other_scale = np.float32(min(unit / second, LARGEST_SCALE) if second > 0 else 0.0)
    for t in range(n):
        f = features[t]
        damping = np.float32(1) + (abs(sides[f, 0]) + abs(sides[f, 1])) / np.float32(enough)
        sides[f, 0] = (sides[f, 1] * other_scale - sides[f, 0] * scale) / damping


@kernel
def measure_members(
    indptr: Any, indices: Any, data: Any, members: Any, begin: int, end: int, sides: Any, scores: Any
) -> None:
    """Score each member by what its features say."""
    for t in range(begin, end):
        ask_for(indices, indptr[members[min(t + AHEAD, end - 1)]])
        ask_for(data, indptr[members[min(t + AHEAD, end - 1)]])
        score = np.float32(0)
        for p in range(indptr[members[t]], indptr[members[t] + 1]):
            score += data[p] * sides[indices[p], 0]
        scores[t - begin] = score


@kernel
def clear_sides(n: int, sides: Any, seen: Any, features: Any) -> None:
    """Make the sides zero again."""
    for t in range(n):
        sides[features[t], 0] = 0
        sides[features[t], 1] = 0
        seen[features[t]] = False


@kernel
def part_members(members: Any, begin: int, cut: int, end: int, scores: Any) -> Any:
    """Put the members with the lowest scores before the cut, each side in the order it had; ties stay before the cut.

    Returns the mean score, those before the cut with the other sign.
    """
    n = cut - begin
    bound = np.partition(scores[: end - begin], n)[n]
    ties = n
    for t in range(end - begin):
        ties -= scores[t] < bound
    now = members[begin:end].copy()
    low, high = begin, cut
    total = 0.0
    for t in range(end - begin):
        score = scores[t]
        # Whatever the scores are, both sides have their sizes.
        if high == end or (low < cut and (score < bound or (score == bound and ties > 0))):
            ties -= score == bound
            members[low] = now[t]
            low += 1
            total -= score
        else:
            members[high] = now[t]
            high += 1
            total += score
    return total / (end - begin)


@kernel
def bisect(
    indptr: Any,
    indices: Any,
    data: Any,
    members: Any,
    begin: int,
    cut: int,
    end: int,
    few: Any,
    few_cut: int,
    n_rounds: int,
    least: float,
    enough: float,
    sides: Any,
    seen: Any,
    features: Any,
    scores: Any,
) -> Any:
    """Order ``members[begin:end]`` so that those before the cut are one cluster of spherical 2-means, the rest another.

    The clusters start at a ``few`` members, those before and after their own cut. Each round parts the members by which
    centre they are nearer to, with features that count as in `weigh_sides`, in the wanted sizes. Ends when the mean
    score is not above ``least``, the one before plus `GAIN`. Returns it, and whether there may be more to gain.
    ``sides`` and ``seen`` are zero and stay so.
    """
    n = add_sides(indptr, indices, data, few, 0, few_cut, len(few), 0, sides, seen, features)
    gain = least
    for number in range(n_rounds):
        weigh_sides(n, enough, sides, features)
        measure_members(indptr, indices, data, members, begin, end, sides, scores)
        clear_sides(n, sides, seen, features)
        gain = part_members(members, begin, cut, end, scores)
        if gain <= least:
            return gain, False
        least = gain + GAIN
        if number + 1 < n_rounds:
            n = add_sides(indptr, indices, data, members, begin, cut, end, 0, sides, seen, features)
    return gain, True


@kernel
def pick_two(seed: int, begin: int, end: int) -> Any:
    """Choose the two of the members from ``begin`` to ``end`` that their clusters start at; always the same two."""
    z = (
        np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(begin) * np.uint64(0xBF58476D1CE4E5B9)
        + np.uint64(end)
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    one = np.int64((z >> HALF) * np.uint64(end - begin) >> HALF)
    other = np.int64((z & LOW_HALF) * np.uint64(end - begin - 1) >> HALF)
    return begin + one, begin + other + (other >= one)


@kernel
def cut_of(begin: int, end: int, n_parts: int) -> Any:
    """Return where members are cut so that both sides can be cut into parts of about the same size."""
    return begin + max(1, (2 * (end - begin) * (n_parts // 2) + n_parts) // (2 * n_parts))


@kernel
def split_cluster(
    indptr: Any,
    indices: Any,
    data: Any,
    members: Any,
    begin: int,
    end: int,
    n_parts: int,
    n_rounds: int,
    seed: int,
    enough: float,
    sides: Any,
    seen: Any,
    features: Any,
    scores: Any,
    place: Any,
    cuts: Any,
) -> Any:
    """Order ``members[begin:end]`` by clusters and clusters of these, as many as parts are wanted.

    Writes where these begin, but for the first, in any order; returns how many there are. The members' vectors, which
    are all over memory, are copied with numbers of their own for the features. ``place`` is -1 and stays so.
    """
    size = end - begin
    own_indptr = np.zeros(size + 1, dtype=np.int64)
    for t in range(size):
        own_indptr[t + 1] = own_indptr[t] + indptr[members[begin + t] + 1] - indptr[members[begin + t]]
    own_indices = np.empty(own_indptr[size], dtype=np.int32)
    own_data = np.empty(own_indptr[size], dtype=np.float32)
    n = k = 0
    for t in range(size):
        for p in range(indptr[members[begin + t]], indptr[members[begin + t] + 1]):
            f = indices[p]
            if place[f] < 0:
                place[f] = n
                n += 1
            own_indices[k], own_data[k] = place[f], data[p]
            k += 1
    for t in range(size):
        for p in range(indptr[members[begin + t]], indptr[members[begin + t] + 1]):
            place[indices[p]] = -1
    order = np.arange(size).astype(np.int32)
    few = np.empty(2, dtype=np.int32)
    spans = np.empty((2 * 64, 3), dtype=np.int64)
    spans[0, 0], spans[0, 1], spans[0, 2] = 0, size, n_parts
    n_spans, n_cuts = 1, 0
    while n_spans > 0:
        n_spans -= 1
        low, high, parts = spans[n_spans, 0], spans[n_spans, 1], spans[n_spans, 2]
        if parts == 1 or high - low <= 1:
            continue
        cut = cut_of(low, high, parts)
        one, other = pick_two(seed, begin + low, begin + high)
        few[0], few[1] = order[one - begin], order[other - begin]
        bisect(
            *(own_indptr, own_indices, own_data, order, low, cut, high, few, 1, n_rounds, -np.inf),
            *(enough, sides, seen, features, scores),
        )
        cuts[n_cuts] = begin + cut
        n_cuts += 1
        spans[n_spans, 0], spans[n_spans, 1], spans[n_spans, 2] = low, cut, parts // 2
        spans[n_spans + 1, 0], spans[n_spans + 1, 1], spans[n_spans + 1, 2] = cut, high, parts - parts // 2
        n_spans += 2
    before = members[begin:end].copy()
    for t in range(size):
        members[begin + t] = before[order[t]]
    return n_cuts
