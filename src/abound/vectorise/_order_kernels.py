"""Kernels that sort words by their bytes, which for UTF-8 is the order of code points, and write out their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.vectorise._scan_kernels import U0, U8, U255

SHORT = 16
"""Runs up to this length are sorted by insertion."""


@kernel
def first_entries(words: Any, table: Any, heads: Any) -> None:
    """Read the first eight bytes of each word as a number that sorts like them."""
    for i in range(len(words)):
        start = table.starts[words[i]]
        heads[i] = table.arena[start + 1] if table.arena[start] != U0 else U0


@kernel
def comes_before(a: Any, b: Any, table: Any) -> Any:
    """Compare two words that agree in their first eight bytes."""
    start_a, start_b = table.starts[a], table.starts[b]
    length_a, length_b = np.int64(table.arena[start_a]), np.int64(table.arena[start_b])
    for j in range(2, ((min(length_a, length_b) + 7) >> 3) + 1):
        if table.arena[start_a + j] != table.arena[start_b + j]:
            return table.arena[start_a + j] < table.arena[start_b + j]
    return length_a < length_b


@kernel
def sort_run(begin: Any, end: Any, table: Any, order: Any, other: Any) -> None:
    """Sort words that agree in their first eight bytes: insertion in short pieces, which are then merged."""
    for low in range(begin, end, SHORT):
        for i in range(low + 1, min(low + SHORT, end)):
            word = order[i]
            j = i - 1
            while j >= low and comes_before(word, order[j], table):
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = word
    width = SHORT
    while width < end - begin:
        for low in range(begin, end, 2 * width):
            middle = min(low + width, end)
            high = min(middle + width, end)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and not comes_before(order[j], order[i], table)):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order[begin:end] = other[begin:end]
        width *= 2


@kernel
def sort_runs(heads: Any, begin: Any, at_least: Any, table: Any, order: Any, other: Any) -> Any:
    """Finish words sorted by their ``heads``: sort each run of equal ones; return where it stopped.

    It begins at ``begin`` and stops after the first run that ends ``at_least`` so many words further on.
    """
    i = begin
    while i < len(order) and i - begin < at_least:
        end = i + 1
        while end < len(order) and heads[end] == heads[i]:
            end += 1
        if end - i > 1:
            sort_run(i, end, table, order, other)
        i = end
    return i


@kernel
def write_word(word: Any, table: Any, end: Any, buffer: Any) -> Any:
    """Write a word's bytes so that they end at a place; return where they begin."""
    start = table.starts[word]
    n_bytes = np.int64(table.arena[start])
    at = end - n_bytes
    for j in range(n_bytes):
        shift = np.uint64(56) - U8 * np.uint64(j & 7)
        buffer[at + j] = table.arena[start + 1 + (j >> 3)] >> shift & U255
    return at


@kernel
def name_lengths(codes: Any, table: Any, grams: Any, lengths: Any) -> None:
    """Count the bytes of each feature's name: its words with a space between them."""
    for i in range(len(codes)):
        code = np.int64(codes[i])
        length = np.int64(0)
        while code < 0:
            gram = -2 - code
            length += np.int64(table.arena[table.starts[grams.words[gram]]]) + 1
            code = np.int64(grams.prefixes[gram])
        lengths[i] = length + np.int64(table.arena[table.starts[code]])


@kernel
def write_names(codes: Any, table: Any, grams: Any, ends: Any, buffer: Any) -> None:
    """Write each feature's name so that it ends at its place; n-grams from their last word to their first."""
    for i in range(len(codes)):
        code = np.int64(codes[i])
        end = ends[i]
        while code < 0:
            gram = -2 - code
            end = write_word(grams.words[gram], table, end, buffer) - 1
            buffer[end] = 32
            code = np.int64(grams.prefixes[gram])
        write_word(code, table, end, buffer)
