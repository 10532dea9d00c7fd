"""Kernels from the features of a text to a row of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.vectorise._scan_kernels import GOLDEN, U32

SHORT = 24
"""Rows up to this length are sorted by counting what is smaller than each entry, longer ones byte by byte."""

NO_NORM, L1, L2 = 0, 1, 2


@kernel
def drop_words(token_ptr: Any, ids: Any, n_dropped: Any, keys: Any) -> None:
    """Take the words with ids from 0 to ``n_dropped`` out of the texts, in place."""
    n = 0
    begin = token_ptr[0]
    for d in range(len(token_ptr) - 1):
        end = token_ptr[d + 1]
        for i in range(begin, end):
            if not 0 <= ids[i] < n_dropped:
                ids[n] = ids[i]
                keys[n] = keys[i]
                n += 1
        begin = end
        token_ptr[d + 1] = n


@kernel
def hash_grams(token_ptr: Any, keys: Any, min_n: Any, max_n: Any, n_buckets: Any, code_ptr: Any, codes: Any) -> None:
    """Hash each text's n-grams into buckets.

    The hash of an n-gram is made of the hash of all but its last word and of that word's key.
    """
    n = 0
    code_ptr[0] = 0
    for d in range(len(token_ptr) - 1):
        end = token_ptr[d + 1]
        for i in range(token_ptr[d], end):
            state = np.uint64(0)
            for size in range(1, min(max_n, end - i) + 1):
                state = (state ^ keys[i + size - 1]) * GOLDEN
                state ^= state >> U32
                if size >= min_n:
                    mixed = state * GOLDEN
                    codes[n] = np.int64((mixed >> U32) * np.uint64(n_buckets) >> U32)
                    n += 1
        code_ptr[d + 1] = n


@kernel
def count_rows(code_ptr: Any, codes: Any, seen: Any, row_ptr: Any, row_codes: Any, row_counts: Any) -> None:
    """Count each text's codes, in the order of their first occurrence; negative ones of -1 are left out.

    ``seen`` has room for four times the codes of the longest text.
    """
    n = 0
    row_ptr[0] = 0
    for d in range(len(code_ptr) - 1):
        row = n
        bits = 4
        while 1 << bits < 2 * (code_ptr[d + 1] - code_ptr[d]):
            bits += 1
        size = 1 << bits
        seen[:size] = 0
        for i in range(code_ptr[d], code_ptr[d + 1]):
            code = codes[i]
            if code == -1:
                continue
            slot = (np.int64(code) * 2654435769 & 0xFFFFFFFF) >> (32 - bits)
            while True:
                place = seen[slot] - 1
                if place < 0:
                    row_codes[n] = code
                    row_counts[n] = 1
                    n += 1
                    seen[slot] = n - row
                    break
                if row_codes[row + place] == code:
                    row_counts[row + place] += 1
                    break
                slot = (slot + 1) & (size - 1)
        row_ptr[d + 1] = n


@kernel
def tally(codes: Any, amounts: Any, of_words: Any, of_grams: Any) -> None:
    """Add an amount for each code to its word's or n-gram's total; no amounts means one each."""
    for i in range(len(codes)):
        amount = amounts[i] if len(amounts) else 1
        if codes[i] >= 0:
            of_words[codes[i]] += amount
        else:
            of_grams[-2 - codes[i]] += amount


@kernel
def sort_row(n: Any, n_bits: Any, row: Any, other: Any, counts: Any) -> None:
    """Sort the first entries of ``row``, all different, by their upper 32 bits, of which ``n_bits`` are in use."""
    if n <= SHORT:
        # Few comparisons without a branch take less time than fewer ones that the processor cannot foresee.
        entries, places = other[:n], row[:n]
        entries[:] = places
        for i in range(n):
            entry, n_smaller = entries[i], 0
            for j in range(n):
                n_smaller += entries[j] < entry
            places[n_smaller] = entry
        return
    source, target = row, other
    n_moves = (n_bits + 7) >> 3
    for move in range(n_moves):
        move_by_byte(n, 32 + 8 * move, source, counts, target)
        source, target = target, source
    if n_moves & 1:
        for i in range(n):
            row[i] = other[i]


@kernel
def move_by_byte(n: Any, shift: Any, source: Any, counts: Any, target: Any) -> None:
    """Move entries in the order of one byte, equal ones as they stand."""
    counts[:] = 0
    for i in range(n):
        counts[(source[i] >> shift & 255) + 1] += 1
    for b in range(1, 256):
        counts[b] += counts[b - 1]
    for i in range(n):
        b = source[i] >> shift & 255
        target[counts[b]] = source[i]
        counts[b] += 1


@kernel
def weigh_rows(
    row_ptr: Any,
    row_codes: Any,
    row_counts: Any,
    word_features: Any,
    gram_features: Any,
    n_features: Any,
    is_sublinear: Any,
    logs: Any,
    idf: Any,
    norm: Any,
    row: Any,
    other: Any,
    counts: Any,
    indptr: Any,
    indices: Any,
    data: Any,
) -> None:
    """Turn counts by code into sorted rows of weights by feature; codes without a feature are left out.

    No ``word_features`` means that codes are features; no ``idf`` means ones. ``indices`` and ``data`` may share the
    memory of ``row_codes`` and ``row_counts``.
    """
    n_bits = 0
    while n_features - 1 >> n_bits:
        n_bits += 1
    n_words = len(word_features) if len(word_features) else n_features
    n_out = 0
    indptr[0] = 0
    for d in range(len(row_ptr) - 1):
        n = 0
        for i in range(row_ptr[d], row_ptr[d + 1]):
            code = row_codes[i]
            # Another thread may have added words since the features were numbered.
            if code >= n_words or -2 - code >= len(gram_features):
                continue
            feature = np.int64(code)
            if len(word_features):
                feature = np.int64(word_features[code] if code >= 0 else gram_features[-2 - code])
                if feature < 0:
                    continue
            row[n] = feature << 32 | row_counts[i]
            n += 1
        sort_row(n, n_bits, row, other, counts)
        total = 0.0
        for i in range(n):
            feature = row[i] >> 32
            count = row[i] & 0xFFFFFFFF
            weight = np.float64(count)
            if is_sublinear:
                weight = logs[count] if count < len(logs) else 1.0 + np.log(weight)
            if len(idf):
                weight *= idf[feature]
            total += weight * weight if norm == L2 else weight
            indices[n_out + i] = feature
            data[n_out + i] = weight
        if norm != NO_NORM and n:
            if norm == L2:
                total = np.sqrt(total)
            for i in range(n_out, n_out + n):
                data[i] = data[i] / total
        n_out += n
        indptr[d + 1] = n_out
